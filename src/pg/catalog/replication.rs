//! Sessions and workers of replication.

use super::syntax::Node;
use crate::pg::abi::{externs, lists};
use core::ffi::{CStr, c_char};
use pgrx::pg_sys::{self, CopyStmt, PlannedStmt};

/// Whether the text is that of a running COPY … TO that the client of a replication connection has
/// sent. Functions that it calls have statements with texts of their own.
pub(crate) fn is_copied_by(text: *const c_char) -> bool {
    // SAFETY: variables of this process. While a portal is active, its statements are there, which
    // nobody changes meanwhile.
    unsafe {
        if !pg_sys::am_db_walsender {
            return false;
        }
        let Some(portal) = pg_sys::ActivePortal.as_ref() else {
            return false;
        };
        let sent = lists::nth::<PlannedStmt>(portal.stmts, 0);
        let copy = sent.and_then(|sent| Node::new((*sent).utilityStmt)?.cast::<CopyStmt>());
        portal.sourceText == text && copy.is_some_and(|copy| !copy.is_from)
    }
}

/// The table of which this process makes the initial copy for a subscription. Its name tells, in all
/// versions: `logical replication … worker for subscription 16394 sync 16389`.
pub(crate) fn table_being_copied() -> Option<pg_sys::Oid> {
    if !externs::IsLogicalWorker() {
        return None;
    }
    // SAFETY: a background worker has an entry, whose name ends with a NUL.
    let name = unsafe { CStr::from_ptr((*pg_sys::MyBgworkerEntry).bgw_name.as_ptr()) };
    let (_, relid) = name.to_str().ok()?.split_once(" sync ")?;
    relid.parse::<u32>().ok().map(pg_sys::Oid::from)
}

/// While it exists, all that this process writes has a replication origin. Subscriptions with
/// `origin = none` (16) leave that out; other consumers receive it.
pub(crate) struct Origin(u16);

/// Where this process has its own origin.
fn origin_of_session() -> *mut u16 {
    #[cfg(not(since19))]
    return &raw mut pg_sys::replorigin_session_origin;
    // SAFETY: only the address of the variable is taken; it is not read.
    #[cfg(since19)]
    unsafe {
        &raw mut pg_sys::replorigin_xact_state.origin
    }
}

impl Origin {
    /// That of changes which are not to be replicated: unlike others, it is created nowhere, several
    /// processes may use it, and neither this server nor a standby keeps its progress.
    pub(crate) fn of_none() -> Self {
        // SAFETY: a variable of this process, which is read where WAL is written.
        unsafe { Self(origin_of_session().replace(pg_sys::DoNotReplicateId as u16)) }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        // SAFETY: as above; the value was there before.
        unsafe { origin_of_session().write(self.0) }
    }
}

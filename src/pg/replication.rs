//! Sessions of the replication protocol.

use super::lists;
use super::syntax::Node;
use core::ffi::c_char;
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

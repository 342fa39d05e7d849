//! `ttl.live_or_removed()`: a foreign key meets an expired row on its referencing side.
//!
//! When a referenced row is deleted or its key changes, PostgreSQL looks for referencing rows,
//! and refuses, updates or deletes. An expired row must not matter there (C6), nor stay behind
//! as an orphan: it is removed.

use super::liveness::Liveness;
use super::removal::{self, Deletion, Removal};
use crate::error::Error;
use crate::pg::fmgr::{self, arg};
use crate::pg::{catalog, externs, nodes, roles, unguarded};
use crate::store::cache;
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, pg_sys};

fmgr::finfo_v1!(pg_finfo_ttl_live_or_removed);

/// `ttl.live_or_removed(relation oid, place tid, live boolean) RETURNS boolean`: whether the row
/// counts. False: it was expired and is gone. An expired row that a trigger keeps counts.
///
/// Anybody may call it, since the statements of foreign keys run as the tables' owners. Only
/// calls that the planner has put into such a statement count: others could name any TID. It
/// trusts no argument: it removes what is expired by the row on disk and the policy in force.
/// Raises 0A000 elsewhere.
///
/// Unguarded, with nothing to drop: errors pass unharmed.
///
/// # Safety
/// Called by PostgreSQL's function manager with three arguments.
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_live_or_removed(
    fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: as declared in SQL; the relation is locked before it is opened.
    unsafe {
        if arg(fcinfo, 2).is_none_or(|live| live.value() as u8 != 0) {
            return pg_sys::Datum::from(true);
        }
        let (Some(relid), Some(tid)) = (arg(fcinfo, 0), arg(fcinfo, 1)) else {
            return pg_sys::Datum::from(true);
        };
        let relid = pg_sys::Oid::from(relid.value() as u32);
        let Some(removing) = removing(relid, nodes::is_called_by_filter(fcinfo)) else {
            return pg_sys::Datum::from(true);
        };
        let mut tid = *tid.cast_mut_ptr::<pg_sys::ItemPointerData>();
        let no_lock = pg_sys::NoLock.cast_signed();
        let table = unguarded::table_open(relid, no_lock);
        let slot = unguarded::table_slot_create(table, core::ptr::null_mut());
        let removal = removal::remove_if_expired(
            table,
            slot,
            &mut tid,
            removing.deletion,
            &removing.liveness,
        );
        unguarded::ExecDropSingleTupleTableSlot(slot);
        unguarded::table_close(table, no_lock);
        pg_sys::Datum::from(removal != Removal::Gone)
    }
}

/// How a row of the table is removed.
#[derive(Clone, Copy)]
struct Removing {
    liveness: Liveness,
    deletion: Deletion,
}

/// `None` if no row of the table can be expired. Leaves the table locked.
///
/// # Safety
/// Within a transaction.
#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
unsafe extern "C-unwind" fn removing(relid: pg_sys::Oid, by_filter: bool) -> Option<Removing> {
    if !by_filter || !externs::InNoForceRLSOperation() {
        Error::new(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            "ttl.live_or_removed() can be called only where a foreign key is enforced",
        )
        .hint("Use ttl.live() to ask, and ttl.purge() to delete.")
        .raise();
    }
    let policy = cache::policy(relid).filter(|policy| policy.hides())?;
    if !is_enforced_on(relid) {
        return None;
    }
    // SAFETY: a table, as was just found; what was opened is closed.
    unsafe {
        let table = pg_sys::table_open(relid, pg_sys::RowExclusiveLock.cast_signed());
        let deletion = Deletion::of(table, relid);
        pg_sys::table_close(table, pg_sys::NoLock.cast_signed());
        let liveness = Liveness::of(&policy);
        Some(Removing { liveness, deletion })
    }
}

/// Whether a foreign key's statement can have met a row here: it runs as the owner of the
/// referencing table, or of a table that this one is a partition of. Somebody else could run a
/// cached plan again.
fn is_enforced_on(relid: pg_sys::Oid) -> bool {
    let user = roles::current_user();
    catalog::class(relid).is_some_and(|class| class.relkind == pg_sys::RELKIND_RELATION)
        && std::iter::once(relid)
            .chain(catalog::ancestors(relid))
            .any(|table| roles::owns_relation(table, user))
}

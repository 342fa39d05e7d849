//! Rows that this transaction has locked by SELECT … FOR UPDATE or SHARE stay visible to its
//! later statements, expired or not (C15).
//!
//! The lock is in the row itself, and only expired rows are checked for it. But that needs the
//! row's TID, which an index alone does not have. So only sessions that lock rows of the table
//! check it (`docs/decisions/0028-rows-that-are-locked.md`).

use crate::clock::moment;
use crate::pg::abi::variable::{ByOid, Variable};
use crate::pg::abi::{externs, fmgr};
use crate::pg::exec::call::Call;
use crate::pg::exec::executor::StatementPlan;
use crate::pg::exec::versions;
use crate::pg::session;
use crate::store::cache;
use pgrx::pg_sys::{self, ItemPointerData, Oid};
use pgrx::prelude::*;
use std::cell::Cell;

fmgr::finfo_v1!(pg_finfo_ttl_locked_here);

/// Labelled tables of whose rows this session has locked some.
static TABLES: ByOid<()> = ByOid::empty();
/// Whether the current transaction has locked any.
static IN_TRANSACTION: Variable<Cell<bool>> = Variable::new(Cell::new(false));

/// Before a statement that locks rows. If it is the session's first one for the table, cached
/// plans are made again.
pub(crate) fn note(plan: StatementPlan<'_>) {
    // In REPEATABLE READ no row expires meanwhile; foreign keys need no exception.
    if !moment::clock_advances_during_waits() || externs::InNoForceRLSOperation() {
        return;
    }
    let mut is_first = false;
    for relid in plan.locked() {
        if let Some(policy) = cache::policy(relid).filter(|policy| policy.hides()) {
            IN_TRANSACTION.set(true);
            is_first |=
                TABLES.with_borrow_mut(|tables| tables.insert(policy.labelled_table, ()).is_none());
        }
    }
    if is_first {
        session::forget_plans();
    }
}

/// Whether this session locks rows under the policy of this table.
pub(super) fn are_taken_under(labelled_table: pg_sys::Oid) -> bool {
    TABLES.with_borrow(|tables| tables.contains_key(&labelled_table))
}

/// The transaction is over. Raises no error.
pub(crate) fn at_xact_end() {
    IN_TRANSACTION.set(false);
}

/// Whether the transaction may have locked rows. A parallel worker does not know.
fn are_there() -> bool {
    IN_TRANSACTION.get() || session::is_parallel_worker()
}

/// Whether the transaction has locked the row with this TID.
///
/// # Safety
/// The transaction has locked the table.
pub(crate) unsafe fn holds(relid: pg_sys::Oid, tid: pg_sys::ItemPointerData) -> bool {
    // SAFETY: as required of the caller.
    are_there() && unsafe { is_locked(relid, tid) }
}

/// # Safety
/// As [`holds`].
#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
unsafe extern "C-unwind" fn is_locked(relid: pg_sys::Oid, tid: pg_sys::ItemPointerData) -> bool {
    // SAFETY: as required of the caller.
    unsafe { versions::is_locked_here(relid, tid) }
}

/// `ttl_internal.locked_here(relation oid, place tid) RETURNS boolean`: whether the current transaction
/// has locked the row with this TID; false where PostgreSQL checks a row again, and in calls that
/// the planner has not put into a filter, which could name any table. STRICT.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_locked_here(
    call: Call<'_, (Oid, ItemPointerData)>,
) -> pg_sys::Datum {
    let (Some(relid), Some(tid)) = call.args() else {
        return pg_sys::Datum::from(false);
    };
    // SAFETY: nothing is kept in `fn_extra`. In a check, the statement itself has locked it by
    // now. A filter's call is on a row of a table that its query has locked.
    pg_sys::Datum::from(unsafe {
        call.is_by_filter() && !moment::is_check_again(&call) && holds(relid, tid)
    })
}

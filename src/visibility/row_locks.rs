//! Rows that this transaction has locked by SELECT … FOR UPDATE or SHARE stay visible to its
//! later statements, expired or not (C15).
//!
//! The lock is in the row itself, and only expired rows are checked for it. But that needs the
//! row's TID, which an index alone does not have. So only sessions that lock rows of the table
//! check it (`docs/decisions/0028-rows-that-are-locked.md`).

use crate::clock::moment;
use crate::error::Error;
use crate::pg::{externs, fmgr, lists, nodes, versions};
use crate::store::cache;
use pgrx::PgSqlErrorCode;
use pgrx::pg_sys::{self, PlanRowMark, RowMarkType};
use pgrx::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;

fmgr::finfo_v1!(pg_finfo_ttl_locked_here);

thread_local! {
    /// Labelled tables of whose rows this session has locked some.
    static TABLES: RefCell<HashSet<pg_sys::Oid>> = RefCell::default();
    /// Whether the current transaction has locked any.
    static IN_TRANSACTION: Cell<bool> = const { Cell::new(false) };
}

/// Before a statement that locks rows. If it is the session's first one for the table, cached
/// plans are made again.
///
/// # Safety
/// A plan that is about to be executed.
pub(crate) unsafe fn note(plan: *mut pg_sys::PlannedStmt) {
    // In REPEATABLE READ no row expires meanwhile; foreign keys need no exception.
    if !moment::waits_count() || externs::InNoForceRLSOperation() {
        return;
    }
    let mut is_first = false;
    // SAFETY: as required of the caller: marks of relations in its range table.
    unsafe {
        for mark in lists::iter::<PlanRowMark>((*plan).rowMarks) {
            if !is_lock((*mark).markType) {
                continue;
            }
            let at = (*mark).rti.cast_signed() - 1;
            let entry = lists::nth::<pg_sys::RangeTblEntry>((*plan).rtable, at);
            let policy = entry.and_then(|entry| cache::policy((*entry).relid));
            if let Some(policy) = policy.filter(|policy| policy.hides()) {
                IN_TRANSACTION.set(true);
                is_first |= TABLES.with_borrow_mut(|tables| tables.insert(policy.labelled_table));
            }
        }
        if is_first {
            pg_sys::ResetPlanCache();
        }
    }
}

fn is_lock(mark: RowMarkType::Type) -> bool {
    [
        RowMarkType::ROW_MARK_EXCLUSIVE,
        RowMarkType::ROW_MARK_NOKEYEXCLUSIVE,
        RowMarkType::ROW_MARK_SHARE,
        RowMarkType::ROW_MARK_KEYSHARE,
    ]
    .contains(&mark)
}

/// Whether this session locks rows under the policy of this table.
pub(super) fn are_taken_under(labelled_table: pg_sys::Oid) -> bool {
    TABLES.with_borrow(|tables| tables.contains(&labelled_table))
}

/// The transaction is over. Raises no error.
pub(crate) fn at_xact_end() {
    IN_TRANSACTION.set(false);
}

/// Whether the transaction may have locked rows. A parallel worker does not know.
fn are_there() -> bool {
    // SAFETY: reads a backend-local variable.
    IN_TRANSACTION.get() || unsafe { pg_sys::ParallelWorkerNumber } >= 0
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

/// `ttl.locked_here(relation oid, place tid) RETURNS boolean`: whether the current transaction
/// has locked the row with this TID; false where PostgreSQL checks a row again. STRICT. Raises
/// 0A000 where the planner has not put it.
///
/// # Safety
/// Called by PostgreSQL's function manager with two arguments.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_locked_here(
    fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: as declared in SQL; the query that met the row there has locked the table.
    unsafe {
        if !nodes::is_called_by_filter(fcinfo) {
            refuse();
        }
        let (Some(relid), Some(tid)) = (fmgr::arg(fcinfo, 0), fmgr::arg(fcinfo, 1)) else {
            return pg_sys::Datum::from(false);
        };
        // By now the statement itself has locked it.
        if moment::is_check_again(fcinfo) {
            return pg_sys::Datum::from(false);
        }
        let relid = pg_sys::Oid::from(relid.value() as u32);
        let tid = *tid.cast_mut_ptr::<pg_sys::ItemPointerData>();
        pg_sys::Datum::from(holds(relid, tid))
    }
}

#[pg_guard]
extern "C-unwind" fn refuse() {
    Error::new(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        "ttl.locked_here() can be called only by the extension itself",
    )
    .hint("Look at the row's xmax, or use the extension pgrowlocks.")
    .raise()
}

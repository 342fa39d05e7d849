//! Rows that this transaction has locked by SELECT … FOR UPDATE or SHARE are still there for
//! its later statements, expired or not (C15).
//!
//! The lock is in the row itself, and the question is asked for expired rows only. But it
//! needs the row's place, which an index alone does not have: so it is put only to sessions
//! that lock rows of the table (`docs/decisions/0028-rows-that-are-locked.md`).

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
    /// Tables that carry a policy, and of whose rows this session has locked some.
    static TABLES: RefCell<HashSet<pg_sys::Oid>> = RefCell::default();
    /// Whether the present transaction has.
    static IN_TRANSACTION: Cell<bool> = const { Cell::new(false) };
}

/// A statement begins that locks rows. Plans that were made before are made anew, if it is the
/// first one that does so of its table.
///
/// # Safety
/// A plan that is about to be executed.
pub(crate) unsafe fn note(plan: *mut pg_sys::PlannedStmt) {
    // In REPEATABLE READ nothing expires meanwhile; foreign keys are no users.
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
                is_first |= TABLES.with_borrow_mut(|tables| tables.insert(policy.holder));
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
pub(super) fn are_taken_under(holder: pg_sys::Oid) -> bool {
    TABLES.with_borrow(|tables| tables.contains(&holder))
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

/// Whether the transaction has locked the row at this place.
///
/// # Safety
/// The transaction has locked the table.
pub(crate) unsafe fn holds(relid: pg_sys::Oid, place: pg_sys::ItemPointerData) -> bool {
    // SAFETY: as required of the caller.
    are_there() && unsafe { is_locked(relid, place) }
}

#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
unsafe extern "C-unwind" fn is_locked(relid: pg_sys::Oid, place: pg_sys::ItemPointerData) -> bool {
    // SAFETY: as required of the caller.
    unsafe { versions::is_locked_here(relid, place) }
}

/// `ttl.locked_here(relation oid, place tid) RETURNS boolean`: whether the present transaction
/// has locked the row at this place; false where PostgreSQL checks a row again. STRICT. Raises
/// 0A000 but where the planner has put it.
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
        let (Some(relid), Some(place)) = (fmgr::arg(fcinfo, 0), fmgr::arg(fcinfo, 1)) else {
            return pg_sys::Datum::from(false);
        };
        // The statement itself has locked it by now.
        if moment::is_check_again(fcinfo) {
            return pg_sys::Datum::from(false);
        }
        let relid = pg_sys::Oid::from(relid.value() as u32);
        let place = *place.cast_mut_ptr::<pg_sys::ItemPointerData>();
        pg_sys::Datum::from(holds(relid, place))
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

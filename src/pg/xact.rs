//! State that must not outlive the statement that set it, errors included.

use crate::clock::execution;
use crate::reaper::{leave, writes};
use crate::reclaim::{self, follow};
use crate::visibility::{row_locks, statement};
use pgrx::pg_sys;
use std::cell::RefCell;

/// An ALTER TABLE that is running, and may validate foreign keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConstraintDdl {
    /// Who runs it.
    pub(crate) user: pg_sys::Oid,
    /// The table, and the partition that it attaches or detaches.
    pub(crate) tables: [Option<pg_sys::Oid>; 2],
}

thread_local! {
    /// Those that run, the innermost last, with the transaction nesting level of each.
    static CONSTRAINT_DDL: RefCell<Vec<(ConstraintDdl, i32)>> = const { RefCell::new(Vec::new()) };
}

/// The innermost ALTER TABLE that is running.
pub(crate) fn constraint_ddl() -> Option<ConstraintDdl> {
    CONSTRAINT_DDL.with_borrow(|all| all.last().map(|&(ddl, _)| ddl))
}

/// Marks the begin of an ALTER TABLE; returns what [`leave_constraint_ddl`] is to be told.
pub(crate) fn enter_constraint_ddl(ddl: ConstraintDdl) -> usize {
    let level = nest_level();
    CONSTRAINT_DDL.with_borrow_mut(|all| {
        all.push((ddl, level));
        all.len() - 1
    })
}

/// Marks its end. An error instead ends it through the callbacks below.
pub(crate) fn leave_constraint_ddl(former: usize) {
    CONSTRAINT_DDL.with_borrow_mut(|all| all.truncate(former));
}

/// How many subtransactions deep the session is.
pub(crate) fn nest_level() -> i32 {
    // SAFETY: reads a backend-local variable.
    unsafe { pg_sys::GetCurrentTransactionNestLevel() }
}

/// Runs `work` with an active snapshot, without which PostgreSQL does not write to
/// catalogs that have TOAST tables. An error ends it with the transaction.
pub(crate) fn with_snapshot<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: within a transaction; what is pushed is popped.
    unsafe {
        if pg_sys::ActiveSnapshotSet() {
            return work();
        }
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        let result = work();
        pg_sys::PopActiveSnapshot();
        result
    }
}

/// Registers the callbacks; once, at load.
pub(crate) fn init() {
    // SAFETY: the callbacks live as long as the library, and raise no error.
    unsafe {
        pg_sys::RegisterXactCallback(Some(at_xact_end), core::ptr::null_mut());
        pg_sys::RegisterSubXactCallback(Some(at_subxact_end), core::ptr::null_mut());
    }
}

unsafe extern "C-unwind" fn at_xact_end(
    event: pg_sys::XactEvent::Type,
    _arg: *mut core::ffi::c_void,
) {
    match event {
        pg_sys::XactEvent::XACT_EVENT_COMMIT => writes::at_commit(),
        pg_sys::XactEvent::XACT_EVENT_ABORT => {
            execution::at_abort();
            reclaim::at_abort(0);
            writes::at_other_end(false);
            leave::readmit_all();
            follow::at_abort(0);
        }
        pg_sys::XactEvent::XACT_EVENT_PREPARE => writes::at_other_end(true),
        _ => {}
    }
    if matches!(
        event,
        pg_sys::XactEvent::XACT_EVENT_ABORT
            | pg_sys::XactEvent::XACT_EVENT_COMMIT
            | pg_sys::XactEvent::XACT_EVENT_PREPARE
    ) {
        row_locks::at_xact_end();
    }
    if matches!(
        event,
        pg_sys::XactEvent::XACT_EVENT_ABORT | pg_sys::XactEvent::XACT_EVENT_COMMIT
    ) {
        leave_constraint_ddl(0);
        statement::at_abort(0);
    }
}

unsafe extern "C-unwind" fn at_subxact_end(
    event: pg_sys::SubXactEvent::Type,
    _my_subid: pg_sys::SubTransactionId,
    _parent_subid: pg_sys::SubTransactionId,
    _arg: *mut core::ffi::c_void,
) {
    let level = nest_level();
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_START_SUB {
        execution::at_subxact_start(level);
    }
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        execution::at_subxact_abort(level);
        reclaim::at_abort(level);
        follow::at_abort(level);
        statement::at_abort(level);
        // One inside an ALTER TABLE (deeper) leaves its mark.
        CONSTRAINT_DDL.with_borrow_mut(|all| all.retain(|&(_, at)| at < level));
    }
}

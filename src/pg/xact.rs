//! State that must not outlive the statement that set it, errors included.

use crate::reaper::{leave, writes};
use crate::reclaim::{self, follow};
use pgrx::pg_sys;
use std::cell::Cell;

thread_local! {
    /// The transaction nesting level at which a utility statement that
    /// validates constraints (ALTER TABLE) runs; 0 when none does.
    static CONSTRAINT_DDL_LEVEL: Cell<i32> = const { Cell::new(0) };
}

/// Whether an ALTER TABLE is running, which may validate foreign keys.
pub(crate) fn in_constraint_ddl() -> bool {
    CONSTRAINT_DDL_LEVEL.get() > 0
}

/// Marks the begin of an ALTER TABLE; returns the former mark for [`leave_constraint_ddl`].
pub(crate) fn enter_constraint_ddl() -> i32 {
    // SAFETY: reads a backend-local variable.
    let level = unsafe { pg_sys::GetCurrentTransactionNestLevel() };
    CONSTRAINT_DDL_LEVEL.replace(level)
}

/// Marks its end. An error instead ends it through the callbacks below.
pub(crate) fn leave_constraint_ddl(former: i32) {
    CONSTRAINT_DDL_LEVEL.set(former);
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
        pg_sys::XactEvent::XACT_EVENT_ABORT | pg_sys::XactEvent::XACT_EVENT_COMMIT
    ) {
        CONSTRAINT_DDL_LEVEL.set(0);
    }
}

unsafe extern "C-unwind" fn at_subxact_end(
    event: pg_sys::SubXactEvent::Type,
    _my_subid: pg_sys::SubTransactionId,
    _parent_subid: pg_sys::SubTransactionId,
    _arg: *mut core::ffi::c_void,
) {
    // A subtransaction that fails inside the ALTER TABLE (deeper) leaves the mark.
    // SAFETY: reads a backend-local variable.
    let level = unsafe { pg_sys::GetCurrentTransactionNestLevel() };
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB {
        reclaim::at_abort(level);
        follow::at_abort(level);
    }
    if event == pg_sys::SubXactEvent::SUBXACT_EVENT_ABORT_SUB && CONSTRAINT_DDL_LEVEL.get() >= level
    {
        CONSTRAINT_DDL_LEVEL.set(0);
    }
}

//! The current transaction.

use pgrx::pg_sys;

/// How many subtransactions deep the session is.
pub(crate) fn nest_level() -> i32 {
    // SAFETY: reads a backend-local variable.
    unsafe { pg_sys::GetCurrentTransactionNestLevel() }
}

/// Runs `work` with an active snapshot, without which PostgreSQL does not write to catalogs that
/// have TOAST tables. An error ends it with the transaction.
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

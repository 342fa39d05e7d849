//! The current transaction.

use crate::pg::abi::externs;
use pgrx::pg_sys;

/// How many subtransactions deep the session is.
pub(crate) fn nest_level() -> i32 {
    externs::GetCurrentTransactionNestLevel()
}

/// Whether all its statements share one snapshot: REPEATABLE READ, SERIALIZABLE.
pub(crate) fn has_one_snapshot() -> bool {
    // SAFETY: reads a variable that only this process writes.
    unsafe { pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ.cast_signed() }
}

/// Lets the next statement see what was done so far.
pub(crate) fn next_command() {
    // SAFETY: a transaction is open, since SQL of a user or of the worker is running.
    unsafe { pg_sys::CommandCounterIncrement() };
}

/// Runs `work` with a snapshot of everything that is committed now.
pub(crate) fn with_latest_snapshot<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: within a transaction; what is pushed is popped. An error ends the transaction, and
    // with it the stack.
    unsafe {
        pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot());
        let result = work();
        pg_sys::PopActiveSnapshot();
        result
    }
}

/// Assigns the transaction its ID; raises an error if none is left.
pub(crate) fn assign_id() {
    // SAFETY: within a transaction, which is what is required.
    unsafe { pg_sys::GetCurrentTransactionId() };
}

/// Whether the transaction may not write now.
pub(crate) fn is_read_only() -> bool {
    // SAFETY: reads variables that only this process writes.
    unsafe { pg_sys::XactReadOnly || pg_sys::IsInParallelMode() }
}

/// From now on no constraint of this transaction is deferred (`SET CONSTRAINTS ALL IMMEDIATE`).
pub(crate) fn defer_nothing() {
    let mut all = pg_sys::ConstraintsSetStmt {
        type_: pg_sys::NodeTag::T_ConstraintsSetStmt,
        constraints: core::ptr::null_mut(),
        deferred: false,
    };
    // SAFETY: within a transaction; a statement without a list means all constraints, and is only read.
    unsafe { pg_sys::AfterTriggerSetState(&raw mut all) };
}

/// Whether triggers on the table are to fire at COMMIT.
pub(crate) fn is_trigger_pending(relid: pg_sys::Oid) -> bool {
    // SAFETY: reads state that only this process writes.
    unsafe { pg_sys::AfterTriggerPendingOnRel(relid) }
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

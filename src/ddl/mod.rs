//! Statements on tables with TTL: what they must not do, what is deleted before them, and
//! what follows after them.

mod added;
pub(crate) mod columns;
pub(crate) mod databases;
mod drop_index;
pub(crate) mod dropped;
mod index_statements;
pub(crate) mod purge_before_change;
pub(crate) mod purge_before_ddl;
mod refusal;
pub(crate) mod sync_label;
pub(crate) mod sync_trigger;
mod table_scans;
pub(crate) mod trigger_guard;

/// A transaction or subtransaction has failed, down to this nesting level: nothing of its
/// statements may stay. Raises no error.
pub(crate) fn at_abort(level: i32) {
    sync_label::at_abort(level);
    sync_trigger::at_abort(level);
}

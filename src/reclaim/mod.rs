//! The key of an expired row is free (C6): unique and exclusion constraints, which
//! the planner does not see, meet expired rows on disk.
//!
//! A trigger looks each new key up as the constraint will, and removes the expired
//! row that holds it (`docs/decisions/0016-free-keys-by-trigger.md`). It is put on the
//! tables that need it by `attach`; `follow` does so after statements that change
//! tables, and `protect` refuses those that would take it away
//! (`docs/decisions/0017-trigger-follows-constraints.md`).

pub(crate) mod attach;
pub(crate) mod before_ddl;
mod clearing;
mod copy_from;
pub(crate) mod dropped;
mod ending_rules;
pub(crate) mod follow;
pub(crate) mod follow_indexes;
mod index_statements;
mod judge;
mod lookup;
mod own_children;
mod own_rows;
mod plan;
mod postponed;
mod prepared;
pub(crate) mod problems;
pub(crate) mod protect;
pub(crate) mod purge;
mod reads_all_rows;
mod referencing;
mod removal;
pub(crate) mod restoring;
pub(crate) mod revival;
mod row;
mod strangers;
mod trigger;
mod unneeded;
mod unneeded_row;
mod with_triggers;

pub(crate) use copy_from::{begin_copy, end_copies};
pub(crate) use plan::forget;
pub(crate) use unneeded::{Spared, may_be_spared, spare};

/// The trigger's name. It must fire last, when all others have had their say about
/// the new row, and PostgreSQL fires triggers in the byte order of their names.
pub(crate) const TRIGGER_NAME: &str = "~ttl_free_expired_keys";

/// A transaction or subtransaction has failed, down to this nesting level: nothing of its
/// statements may stay. Raises no error.
pub(crate) fn at_abort(level: i32) {
    end_copies();
    follow_indexes::at_abort(level);
}

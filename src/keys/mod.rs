//! The key of an expired row is free (C6): unique and exclusion constraints, which
//! the planner does not see, meet expired rows on disk.
//!
//! A trigger looks each new key up as the constraint will, and removes the expired
//! row that holds it (`docs/decisions/0016-free-keys-by-trigger.md`).

pub(crate) mod bulk_precheck;
pub(crate) mod copy_from;
mod liveness;
mod lookup;
mod no_action_checks;
mod plan;
mod prepared;
mod referencing;
mod removal;
pub(crate) mod restoring;
mod row;
mod same_xact_children;
mod same_xact_rows;
pub(crate) mod skip_trigger;
mod strangers;
mod trigger;
pub(crate) mod trigger_placement;
mod unneeded_row;
mod with_triggers;

pub(crate) use plan::init;

/// The trigger's name. It must fire last, when all others have had their say about
/// the new row, and PostgreSQL fires triggers in the byte order of their names.
pub(crate) const TRIGGER_NAME: &str = "~ttl_free_expired_keys";

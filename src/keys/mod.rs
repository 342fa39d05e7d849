//! Frees the keys of expired rows (C6): unique and exclusion constraints bypass the planner, and
//! meet expired rows on disk.
//!
//! A trigger looks up each new key as the constraint will, and removes the expired row that
//! holds it (`docs/decisions/0016-free-keys-by-trigger.md`).

pub(crate) mod copy_from;
pub(crate) mod examination;
mod key_lookup;
mod liveness;
mod many_rows;
pub(crate) mod no_action_checks;
mod plan;
mod prepared_plan;
#[cfg(since19)]
pub(crate) mod references;
mod removal;
pub(crate) mod restoring;
mod row;
mod same_xact_children;
mod same_xact_rows;
pub(crate) mod skip_trigger;
mod trigger;
pub(crate) mod trigger_placement;
mod unneeded_row;
mod with_triggers;

/// Registers for invalidations, and the hook; once, at load.
pub(crate) fn init() {
    plan::init();
    #[cfg(since19)]
    references::init();
}

/// The trigger's name. PostgreSQL fires triggers in the byte order of their names, and this one
/// must be the last: others may change the new row.
pub(crate) const TRIGGER_NAME: &str = "~ttl_free_expired_keys";

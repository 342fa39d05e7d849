//! Refuses statements that would remove the trigger while TTL needs it.
//!
//! `DISABLE TRIGGER ALL` is allowed, since pg_dump emits it: `sync_trigger.rs` enables the trigger
//! again at once.

use super::refusal::{Needed, refuse};
use super::statement::{Command, Kind, Statement};
use crate::keys::{TRIGGER_NAME, trigger_placement};
use crate::pg::{catalog, roles};
use crate::store::cache;

/// Refuses to drop, disable, rename or replace the trigger by its name, if the table has it and TTL
/// is on.
pub(super) fn check(statement: &Statement<'_>) {
    let takes = |command: &Command| matches!(command, Command::Triggers { takes_ours: true });
    let verb = match statement.kind {
        Kind::DropTrigger => "drop",
        Kind::RenameTrigger => "rename",
        Kind::CreateTrigger { replace: true } => "replace",
        _ if statement.commands.iter().any(takes) => "disable",
        _ => return,
    };
    let Some(table) = statement.relation else {
        return;
    };
    // `pg_restore --clean` drops it before the table.
    if !trigger_placement::has(table)
        || trigger_placement::placement(table) == trigger_placement::Placement::Absent
        || roles::reads_physically(table)
    {
        return;
    }
    if let Some(policy) = cache::policy(table) {
        let name = catalog::quote_identifier(TRIGGER_NAME);
        let what = format!("{verb} trigger {name}");
        refuse(&what, Needed::Trigger, table, policy.labelled_table);
    }
}

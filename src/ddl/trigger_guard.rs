//! Refuses statements that would remove the trigger while TTL needs it.
//!
//! `DISABLE TRIGGER ALL` is allowed, since pg_dump emits it: `sync_trigger.rs` enables the trigger
//! again at once.

use super::refusal::{Needed, refuse};
use super::statement_kind::{AlterCommand, StatementKind};
use super::utility_statement::UtilityStatement;
use crate::citus;
use crate::error::Error;
use crate::keys::{TRIGGER_NAME, trigger_placement};
use crate::pg::catalog::{self, roles};
use crate::store::cache;
use pgrx::pg_sys;

/// Refuses to drop, disable, rename or replace the trigger by its name, if the table has it and TTL
/// is on.
pub(super) fn check(statement: &UtilityStatement<'_>) {
    let takes =
        |command: &AlterCommand| matches!(command, AlterCommand::Triggers { takes_ours: true });
    let verb = match statement.kind {
        StatementKind::DropTrigger => "drop",
        StatementKind::RenameTrigger => "rename",
        StatementKind::CreateTrigger { replace: true } => "replace",
        _ if statement.commands.iter().any(takes) => "disable",
        _ => return,
    };
    let Some(table) = statement.relation else {
        return;
    };
    // PostgreSQL has its own error for others; to replace a trigger, the privilege TRIGGER is enough.
    let is_for_owner = !matches!(statement.kind, StatementKind::CreateTrigger { .. });
    if is_for_owner && !roles::owns_relation(table, roles::current_user()) {
        return;
    }
    // `pg_restore --clean` drops it before the table.
    if !trigger_placement::has(table)
        || trigger_placement::placement(table) == trigger_placement::Placement::Absent
        || roles::reads_physically(table)
    {
        return;
    }
    if statement.kind == StatementKind::RenameTrigger && citus::has_shard_name(table) {
        taken_by_citus(table).raise();
    }
    if let Some(policy) = cache::policy(table) {
        let name = catalog::quote_identifier(TRIGGER_NAME);
        let what = format!("{verb} trigger {name}");
        refuse(&what, Needed::Trigger, table, policy.labelled_table);
    }
}

/// The error where Citus makes a shard of a local table by itself, as for a foreign key to a reference
/// table, and renames its triggers.
fn taken_by_citus(shard: pg_sys::Oid) -> Error {
    // Its new name, without the number.
    let name = catalog::relation_name(shard);
    let name = name
        .rsplit_once('_')
        .map_or(name.as_str(), |(name, _)| name);
    let schema = catalog::class(shard).map(|class| catalog::schema_name(class.namespace));
    let name = catalog::quote_identifier(name);
    let table = schema.map_or_else(|| name.clone(), |schema| format!("{schema}.{name}"));
    Error::unsupported(format!(
        "Citus cannot take table {table} into its metadata by this statement"
    ))
    .detail("The table has a time to live, whose trigger would go to its shard.")
    .hint(format!(
        "Do that first: SELECT citus_add_local_table_to_metadata({}).",
        catalog::quote_literal(&table)
    ))
}

//! Rows that come to a policy from elsewhere, with the times that they had there: deletion waits for
//! `ttl.resume` (docs/decisions/0070-what-waits.md).

use super::statement_kind::{AlterCommand, StatementKind};
use super::utility_statement::UtilityStatement;
use crate::citus;
use crate::deletion::purge_tables;
use crate::error::Error;
use crate::keys::restoring;
use crate::pg::catalog::{self, replication, roles};
use crate::pg::exec::relation::OpenRelation;
use crate::pg::session::xact;
use crate::policy::Policy;
use crate::store::{cache, extension, governing_label, label_of, succession};
use pgrx::pg_sys;

/// The number of blocks up to which a table is searched for expired rows.
const LARGE: u32 = 16 * 1024;

/// The table that ATTACH PARTITION or INHERIT brings under its parent's policy.
pub(super) fn table(statement: &UtilityStatement<'_>) -> Option<pg_sys::Oid> {
    let comes = |command: &AlterCommand| {
        matches!(command, AlterCommand::Attach(_) | AlterCommand::Inherit(_))
    };
    let is_table = statement.kind == StatementKind::AlterTable;
    if !is_table || !statement.commands.iter().any(comes) {
        return None;
    }
    statement.partition().or(statement.relation)
}

/// After that: if the table, or one below it, has waited itself, the whole family waits; if rows have expired by coming,
/// background deletion in the family waits for `ttl.change_delay`, as after a change of the policy (C24).
pub(super) fn after_attach(relid: pg_sys::Oid) {
    let Some(label) = governing_label(relid) else {
        return;
    };
    let family = label.labelled_table;
    let is_served = family != relid && !label.policy.restored;
    // The owner of a part of the family only cannot make the rest wait.
    if !is_served || !label.policy.is_on() || !roles::owns_relation(family, roles::current_user()) {
        return;
    }
    let came = catalog::qualified_name(relid);
    let tables = catalog::all_inheritors(relid);
    let own = tables.iter().filter_map(|&table| label_of(table));
    let waiting: Vec<Policy> = own.filter(|policy| policy.restored).collect();
    let handed_over = waiting.iter().any(|policy| policy.handed_over);
    if !waiting.is_empty() && restoring::hold(family, handed_over) {
        let what = if handed_over {
            "has belonged to another owner"
        } else {
            "was restored"
        };
        let origin = format!("Table {came}, which now follows its time to live, {what}");
        waits(family, &origin).warn();
        return;
    }
    // The rows of a table of Citus are in its shards.
    if citus::is_of_citus() || citus::is_shell(family) {
        return;
    }
    xact::next_command();
    let is_own = |table: &pg_sys::Oid| roles::owns_relation(*table, roles::current_user());
    // Reading a large table would keep the statement's locks for long.
    let is_large = |table: &pg_sys::Oid| {
        catalog::has_rows(*table) && OpenRelation::locked(*table).blocks() > LARGE
    };
    if !tables.iter().all(is_own) {
        return;
    }
    let may_be = tables.iter().any(is_large);
    if !may_be && !tables.into_iter().any(purge_tables::has_expired) {
        return;
    }
    succession::delay(family);
    Error::for_warning(format!(
        "rows of table {came} {} expired by the time to live of {}",
        if may_be { "may be" } else { "are" },
        catalog::qualified_name(family)
    ))
    .detail(format!("They {}.", succession::fate(label.policy.hidden)))
    .hint(format!(
        "To have them back, take the table from {}, by DETACH PARTITION or NO INHERIT.",
        catalog::qualified_name(family)
    ))
    .warn();
}

/// Warns of a table that inherits from two tables with policies of their own: it follows the first's.
pub(super) fn warn_of_other_policies(relid: pg_sys::Oid) {
    let Some(family) = cache::labelled_table(relid) else {
        return;
    };
    let is_another = |&above: &pg_sys::Oid| {
        above != family
            && cache::labelled_table(above) == Some(above)
            && cache::own_label(above).is_some_and(|label| label.is_on())
    };
    if let Some(other) = catalog::ancestors(relid).into_iter().find(is_another) {
        let (table, other, first) = (
            catalog::qualified_name(relid),
            catalog::qualified_name(other),
            catalog::qualified_name(family),
        );
        Error::for_warning(format!(
            "the time to live of {other} does not apply to table {table}"
        ))
        .detail(format!(
            "The table also inherits from {first}, whose time to live applies."
        ))
        .hint(format!(
            "To have it follow the other, run: ALTER TABLE {table} NO INHERIT {first};"
        ))
        .warn();
    }
}

/// Before a transaction of the initial copy of a subscription commits: a table waits to which it has
/// brought rows that would be deleted at once.
pub(crate) fn before_commit() {
    let Some(relid) = replication::table_being_copied() else {
        return;
    };
    if extension::functions().is_none() {
        return;
    }
    xact::next_command();
    xact::with_latest_snapshot(|| {
        let Some(label) = governing_label(relid).filter(|label| label.policy.is_on()) else {
            return;
        };
        let tables = catalog::all_inheritors(relid);
        if tables.into_iter().any(purge_tables::has_brought_expired)
            && restoring::hold(label.labelled_table, false)
        {
            waits(
                label.labelled_table,
                "The initial copy of a subscription has brought expired rows",
            )
            .warn();
        }
    });
}

fn waits(family: pg_sys::Oid, origin: &str) -> Error {
    let table = catalog::qualified_name(family);
    Error::for_warning(format!("deletion of expired rows of table {table} waits"))
        .detail(format!("{origin}."))
        .hint(format!(
            "Look at them with SET ttl.show_expired = on; then SELECT ttl.resume({}) starts it.",
            catalog::quote_literal(&table)
        ))
}

//! Rows that come to a policy from elsewhere, with the times that they had there: deletion waits for
//! `ttl.resume` (docs/decisions/0070-what-waits.md).

use super::utility_statement::{AlterCommand, StatementKind, UtilityStatement};
use crate::deletion::purge_tables;
use crate::error::Error;
use crate::keys::restoring;
use crate::pg::catalog::{self, replication, roles};
use crate::pg::session::xact;
use crate::store::{extension, governing_label, label_of};
use pgrx::{PgSqlErrorCode, pg_sys};

/// The table that ATTACH PARTITION or INHERIT brings under its parent's policy.
pub(super) fn table(statement: &UtilityStatement<'_>) -> Option<pg_sys::Oid> {
    let comes =
        |command: &AlterCommand| matches!(command, AlterCommand::Attach(_) | AlterCommand::Inherit);
    let is_table = statement.kind == StatementKind::AlterTable;
    if !is_table || !statement.commands.iter().any(comes) {
        return None;
    }
    statement.partition().or(statement.relation)
}

/// After that: if the table, or one below it, has waited itself, the whole family waits.
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
    let waited = |table: pg_sys::Oid| label_of(table).is_some_and(|policy| policy.restored);
    if catalog::all_inheritors(relid).into_iter().any(waited) && restoring::hold(family) {
        let came = catalog::qualified_name(relid);
        let origin = format!("Table {came}, which now follows its time to live, was restored");
        waits(family, &origin).warn();
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
            && restoring::hold(label.labelled_table)
        {
            waits(
                label.labelled_table,
                "The initial copy of a subscription has brought",
            )
            .warn();
        }
    });
}

fn waits(family: pg_sys::Oid, origin: &str) -> Error {
    let table = catalog::qualified_name(family);
    Error::new(
        PgSqlErrorCode::ERRCODE_WARNING,
        format!("deletion of expired rows of table {table} waits"),
    )
    .detail(format!("{origin}."))
    .hint(format!(
        "Look at them with SET ttl.show_expired = on; then SELECT ttl.resume({}) starts it.",
        catalog::quote_literal(&table)
    ))
}

//! Refuses to drop the constraint on the override (C3), and NOT NULL of a time that `ttl.enable`
//! added, while TTL is on.

use super::refusal::{Needed, refuse};
use super::statement_kind::AlterCommand;
use crate::pg::catalog::constraints::{self, Constraint};
use crate::pg::catalog::{self, roles};
use crate::store::{TablePolicy, extension};
use pgrx::pg_sys;

/// Refuses DROP CONSTRAINT and DROP NOT NULL of what the table's policy needs. `dropped` are all
/// constraints that the statement drops.
pub(super) fn check(
    table: pg_sys::Oid,
    policy: &TablePolicy,
    command: &AlterCommand,
    dropped: &[&str],
) {
    // `pg_restore --clean` drops the table next.
    let Some(clock) = policy.clock.filter(|_| !roles::reads_physically(table)) else {
        return;
    };
    let label = &policy.label;
    let loses = |what: &str, needed| refuse(what, needed, table, policy.labelled_table);
    // One that was adopted may have NULLs.
    let is_added = |column: &Option<String>| {
        let name = column.as_deref();
        name.is_some_and(|name| label.added.has_column(name)) && clock.ts.not_null
    };
    match command {
        AlterCommand::DropNotNull(name)
            if Some(name) == label.ts_column.as_ref() && is_added(&label.ts_column) =>
        {
            let column = catalog::quote_identifier(name);
            let what = format!("drop NOT NULL of column {column}");
            loses(&what, Needed::NotNull);
        }
        AlterCommand::DropConstraint(name) => {
            let all = constraints::of(table);
            let Some(constraint) = all.iter().find(|constraint| constraint.name == *name) else {
                return;
            };
            let shown = catalog::quote_identifier(name);
            if constraint.is_not_null() {
                if constraint.columns == [clock.ts.attno] && is_added(&label.ts_column) {
                    loses(&format!("drop constraint {shown}"), Needed::NotNull);
                }
            } else if let Some((ttl, functions)) = clock.ttl.zip(extension::functions()) {
                let serves =
                    |it: &Constraint| it.columns == [ttl.attno] && it.calls(functions.is_override);
                let stays = |it: &&Constraint| !dropped.contains(&it.name.as_str());
                if serves(constraint) && !all.iter().filter(stays).any(serves) {
                    loses(&format!("drop constraint {shown}"), Needed::Constraint);
                }
            }
        }
        _ => {}
    }
}

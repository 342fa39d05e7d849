//! While TTL is on, statements that drop or change the columns and indexes of a policy are refused
//! (C11), as they are likely mistakes. With TTL off, the label forgets what `ttl.enable` added and
//! the statement drops.

use super::refusal::{Needed, refuse, refuse_as_primary_key, refuse_change};
use super::statement_kind::AlterCommand;
use super::sync_added;
use super::utility_statement::{UtilityStatement, table_of};
use crate::pg::catalog::constraints::{self, Constraint};
use crate::pg::catalog::{self, roles};
use crate::policy::{IndexMethod, Policy};
use crate::store::{Rule, TablePolicy, cache, expiry_index, extension, label_of, missing_index};
use pgrx::pg_sys;

/// Refuses `DROP INDEX` of an index that deletion uses, unless another index can be used.
pub(super) fn check_drop_index(statement: &UtilityStatement<'_>) {
    let dropped = &statement.indexes;
    for &dropping in dropped {
        let table = table_of(dropping);
        let Some(policy) = cache::policy(table).filter(|policy| policy.needs_clock()) else {
            continue;
        };
        // `pg_restore --clean` drops the table next.
        let Some(clock) = policy.clock.filter(|_| !roles::reads_physically(table)) else {
            continue;
        };
        let wants_none = |label: &Policy| !missing_index::are_wanted(policy.labelled_table, label);
        // Without it, deletion reads the table.
        if label_of(policy.labelled_table)
            .is_some_and(|label| label.index == IndexMethod::Auto && wants_none(&label))
        {
            continue;
        }
        let serving = expiry_index::find(table, &clock.ts, clock.ttl.as_ref());
        if serving.contains(&dropping) && serving.iter().all(|i| dropped.contains(i)) {
            let name = catalog::quote_identifier(&catalog::relation_name(dropping));
            let what = format!("drop index {name}");
            refuse(&what, Needed::Index, table, policy.labelled_table);
        }
    }
}

/// Refuses to drop, or to change the type of, a column of a policy, to drop or change the
/// expression that computes the override from its document (D1), and to drop the constraints of
/// both columns.
pub(super) fn check_alter_table(statement: &UtilityStatement<'_>) {
    // PostgreSQL has its own error for who does not own the table.
    let is_owned = |&relid: &pg_sys::Oid| roles::owns_relation(relid, roles::current_user());
    let Some(relid) = statement.relation.filter(is_owned) else {
        return;
    };
    for command in &statement.commands {
        if let AlterCommand::AddConstraint(Some(index)) = command {
            refuse_primary_key(relid, index);
        }
    }
    let touching: Vec<(&str, &AlterCommand)> = statement
        .commands
        .iter()
        .filter_map(|command| match command {
            AlterCommand::DropColumn(name)
            | AlterCommand::AlterType(name, _)
            | AlterCommand::Expression(_, name)
            | AlterCommand::DropNotNull(name)
            | AlterCommand::DropConstraint(name) => Some((name.as_str(), command)),
            _ => None,
        })
        .collect();
    if touching.is_empty() {
        return;
    }
    for table in catalog::all_inheritors(relid) {
        check_columns(table, &touching);
    }
    let dropped = touching.iter().filter_map(|(name, command)| match command {
        AlterCommand::DropColumn(_) => Some(*name),
        _ => None,
    });
    let dropped: Vec<&str> = dropped.collect();
    if !dropped.is_empty() {
        sync_added::forget_columns(relid, &dropped);
    }
}

fn check_columns(table: pg_sys::Oid, touching: &[(&str, &AlterCommand)]) {
    let Some(policy) = cache::policy(table) else {
        return;
    };
    // With TTL off the time column may be dropped. But with TTL indexes the policy must keep every
    // column that it names: otherwise it is not in force, and rows that expired by a TTL index
    // would live again.
    let needs_clock = policy.needs_clock() || !policy.label.rules.is_empty();
    let dropped: Vec<&str> = touching
        .iter()
        .filter(|(_, command)| matches!(command, AlterCommand::DropConstraint(_)))
        .map(|&(name, _)| name)
        .collect();
    for &(name, command) in touching {
        if let AlterCommand::DropConstraint(_) | AlterCommand::DropNotNull(_) = command {
            if policy.needs_clock() {
                check_constraints(table, &policy, command, &dropped);
            }
            continue;
        }
        if let AlterCommand::AlterType(_, Some(wanted)) = command
            && catalog::attribute(table, name).is_some_and(|it| (it.type_oid, it.typmod) == *wanted)
        {
            // As migrations write it; PostgreSQL builds the column's indexes and constraints anew.
            continue;
        }
        let column = catalog::quote_identifier(name);
        let (what, needed) = match command {
            AlterCommand::Expression(verb, _) => {
                let what = format!("{verb} expression of column {column}");
                (what, Needed::Expression)
            }
            AlterCommand::AlterType(..) => (format!("alter type of column {column}"), Needed::Type),
            _ => (format!("drop column {column}"), Needed::Column(name)),
        };
        if needs_clock && policy.label.columns().any(|column| column == name) {
            refuse(&what, needed, table, policy.labelled_table);
        }
        // Dropping the column drops its index, which ends the rule (M8).
        if !matches!(command, AlterCommand::DropColumn(_))
            && let Some(rule) = policy.rules.iter().find(|rule| uses(rule, table, name))
        {
            refuse_change(&what, (table, name), policy.labelled_table, &rule.index);
        }
    }
}

/// Whether the date of a row is made of the column.
fn uses(rule: &Rule, table: pg_sys::Oid, name: &str) -> bool {
    let column = catalog::attribute(table, name);
    column.is_some_and(|column| rule.columns().contains(&column.attno))
}

/// Refuses ADD PRIMARY KEY USING INDEX of a TTL index: no row expires by a primary key (M7), so
/// expired rows would live again.
fn refuse_primary_key(table: pg_sys::Oid, index: &str) {
    if label_of(table).is_some_and(|policy| policy.rule(index).is_some()) {
        let shown = catalog::quote_identifier(index);
        let what = format!("make index {shown} a primary key");
        refuse_as_primary_key(&what, table, index);
    }
}

/// Refuses DROP CONSTRAINT and DROP NOT NULL of what the table's policy needs. `dropped` are all
/// constraints that the statement drops.
fn check_constraints(
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

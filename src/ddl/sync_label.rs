//! Labels follow renamed columns and indexes, and lose dropped indexes (M8).
//!
//! Before a statement, the indexes that it may rename are noted by OID; after it, the label gets
//! their new names (docs/decisions/0019-ttl-indexes-by-name.md). `dropped` reports the dropped
//! ones.

use super::drop_index::{self, IndexBefore};
use super::statement_kind::{AlterCommand, StatementKind};
use super::sync_added;
use super::utility_statement::{UtilityStatement, is_index, table_of};
use crate::error::Error;
use crate::pg::abi::report::or_raise;
use crate::pg::catalog::{self, roles};
use crate::pg::session::xact;
use crate::policy::{IndexRule, Policy};
use crate::store::{index_of, label_of, policy_lock, seclabel, succession};
use pgrx::pg_sys;
use std::collections::HashSet;

/// What a statement may change of what labels name.
#[derive(Default)]
pub(super) struct LabelBefore {
    /// TTL indexes of the tables that the statement changes.
    pub(super) indexes: Vec<IndexBefore>,
    /// The table of an index that is built: afterwards a TTL index may exist or be valid.
    building: Option<pg_sys::Oid>,
    /// What it renames: a column, or if the number is 0 an index that `ttl.enable` built; its old
    /// name.
    renames: Option<(pg_sys::Oid, i16, String)>,
}

/// Notes what the statement may rename, and deletes the rows that are expired by TTL indexes that
/// it drops.
pub(super) fn before(statement: &UtilityStatement<'_>) -> LabelBefore {
    let mut noted = LabelBefore {
        renames: renamed(statement),
        ..LabelBefore::default()
    };
    if let StatementKind::CreateIndex { .. } | StatementKind::Reindex = statement.kind {
        let names_indexes =
            |&table: &pg_sys::Oid| label_of(table).is_some_and(|policy| !policy.rules.is_empty());
        noted.building = statement.table.filter(names_indexes);
        return noted;
    }
    if statement.kind == StatementKind::RenameRelation {
        lock_for_rename(statement);
    }
    let tables = indexed_tables(statement).into_iter();
    noted.indexes = tables.flat_map(ttl_indexes).collect();
    if !noted.indexes.is_empty() {
        or_raise(drop_index::keep_from_reviving(statement, &noted.indexes));
    }
    noted
}

/// What the statement renames: the table's OID, the column's number (0 for an index that
/// `ttl.enable` built), and the old name.
fn renamed(statement: &UtilityStatement<'_>) -> Option<(pg_sys::Oid, i16, String)> {
    let relid = statement.relation?;
    match statement.kind {
        StatementKind::RenameColumn => {
            let column = catalog::attribute(relid, &statement.column)?;
            Some((relid, column.attno, statement.column.clone()))
        }
        StatementKind::RenameRelation if is_index(relid) => {
            let name = catalog::relation_name(relid);
            sync_added::is_index(table_of(relid), &name).then_some((relid, 0, name))
        }
        _ => None,
    }
}

/// The tables of which the statement may rename an index or drops one by name.
fn indexed_tables(statement: &UtilityStatement<'_>) -> Vec<pg_sys::Oid> {
    let drops = |command: &AlterCommand| {
        matches!(
            command,
            AlterCommand::DropColumn(_) | AlterCommand::DropConstraint(_)
        )
    };
    // ADD CONSTRAINT … USING INDEX renames the index to the constraint's name.
    let adds = |command: &AlterCommand| matches!(command, AlterCommand::AddConstraint(_));
    let tables = statement.table.into_iter();
    match statement.kind {
        StatementKind::RenameRelation | StatementKind::RenameConstraint => tables.collect(),
        StatementKind::DropIndex => {
            let tables: HashSet<_> = statement.indexes.iter().map(|&i| table_of(i)).collect();
            let mut tables: Vec<_> = tables.into_iter().collect();
            tables.sort_unstable_by_key(|table| table.to_u32());
            tables
        }
        _ if statement.commands.iter().any(drops) => {
            tables.flat_map(catalog::all_inheritors).collect()
        }
        _ if statement.commands.iter().any(adds) => tables.collect(),
        _ => vec![],
    }
}

/// Locks the policy that names an index, before the statement locks the index: DROP INDEX and a
/// change of the rule take the locks in this order.
fn lock_for_rename(statement: &UtilityStatement<'_>) {
    let Some(index) = statement.relation.filter(|&relid| is_index(relid)) else {
        return;
    };
    let table = table_of(index);
    let name = catalog::relation_name(index);
    if label_of(table).is_some_and(|policy| policy.rule(&name).is_some())
        && roles::owns_relation(table, roles::current_user())
    {
        policy_lock::lock_policy_for_change(table);
    }
}

/// Updates the labels after the statement.
pub(super) fn after(noted: &LabelBefore) {
    if noted.renames.is_none() && noted.building.is_none() && noted.indexes.is_empty() {
        return;
    }
    xact::next_command();
    if let Some((relid, attno, old)) = &noted.renames {
        follow_rename(*relid, *attno, old);
    }
    // DROP INDEX CONCURRENTLY leaves no snapshot.
    xact::with_snapshot(|| {
        // PostgreSQL does not invalidate the tables that inherit from it.
        if let Some(table) = noted.building
            && catalog::class(table).is_some()
        {
            seclabel::invalidate(table);
        }
        // What is below first: the policy of a table below does not come into force if it ends, too.
        for of_table in noted
            .indexes
            .chunk_by(|a, b| a.labelled_table == b.labelled_table)
            .rev()
        {
            follow_indexes(of_table);
        }
    });
}

/// Stores a column's new name in the labels of the table and its children, or an index's new name
/// in the label of its table.
fn follow_rename(relid: pg_sys::Oid, attno: i16, old: &str) {
    if attno == 0 {
        let new = catalog::relation_name(relid);
        if !new.is_empty() {
            sync_added::rename_index(table_of(relid), old, &new);
        }
        return;
    }
    let new = catalog::column_name(relid, attno);
    if new.is_empty() {
        return;
    }
    for relid in catalog::all_inheritors(relid) {
        if let Some(mut policy) = label_of(relid)
            && policy.rename_column(old, &new)
        {
            seclabel::set(relid, Some(&policy));
        }
    }
}

/// Stores the present names of a table's indexes in its label.
fn follow_indexes(noted: &[IndexBefore]) {
    let Some(labelled_table) = noted.first().map(|noted| noted.labelled_table) else {
        return;
    };
    correct(labelled_table, |policy| {
        let mut new = policy.clone();
        for noted in noted {
            let name = catalog::relation_name(noted.index);
            // Nothing happens if no rule has the former name.
            if !name.is_empty() && name != noted.name {
                new.rename_index(&noted.name, &name);
            }
        }
        // pg_restore creates indexes after the label.
        if !policy.restored {
            new.rules
                .retain(|rule| index_of(labelled_table, &rule.index).is_some());
        }
        new
    });
}

/// Removes the rules of dropped indexes from the table's label (M8).
pub(super) fn end_rules(labelled_table: pg_sys::Oid, dropped: &[String]) {
    let dropped: HashSet<&String> = dropped.iter().collect();
    // ALTER COLUMN … TYPE drops and rebuilds indexes: those still exist.
    let is_gone =
        |index: &String| dropped.contains(index) && index_of(labelled_table, index).is_none();
    correct(labelled_table, |policy| {
        let mut new = policy.clone();
        new.rules.retain(|rule| !is_gone(&rule.index));
        new
    });
}

/// Stores the corrected label, if it differs.
fn correct(labelled_table: pg_sys::Oid, corrected: impl Fn(&Policy) -> Policy) {
    let names_indexes = |policy: &Policy| !policy.rules.is_empty();
    let is_right = |policy: Policy| corrected(&policy) == policy;
    if catalog::class(labelled_table).is_none()
        || label_of(labelled_table)
            .filter(names_indexes)
            .is_none_or(is_right)
    {
        return;
    }
    // Read the label under the lock: another session may be changing it.
    policy_lock::lock_policy_for_change(labelled_table);
    if let Some(policy) = label_of(labelled_table) {
        let new = corrected(&policy);
        if new != policy {
            succession::set(labelled_table, Some(&new));
            tell_of_dropped(labelled_table, policy.rules, &new);
        }
    }
}

/// Says which TTL indexes are gone: the statement may be part of a migration that replaces one. An index that is
/// renamed has another name, and its rule is still there.
fn tell_of_dropped(labelled_table: pg_sys::Oid, before: Vec<IndexRule>, new: &Policy) {
    if new.rules.len() == before.len() {
        return;
    }
    let is_gone = |rule: &IndexRule| new.rule(&rule.index).is_none();
    let gone: Vec<IndexRule> = before.into_iter().filter(is_gone).collect();
    Error::dropped_ttl_indexes(labelled_table, &gone).notice();
}

/// The TTL indexes that the table's own label names.
fn ttl_indexes(labelled_table: pg_sys::Oid) -> Vec<IndexBefore> {
    let rules = label_of(labelled_table).map_or(vec![], |policy| policy.rules);
    let index = |name: &str| index_of(labelled_table, name);
    rules
        .into_iter()
        .filter_map(|rule| {
            Some(IndexBefore {
                labelled_table,
                index: index(&rule.index)?,
                name: rule.index,
            })
        })
        .collect()
}

//! Adds the trigger that frees keys after a statement by which a table needs it, and removes it
//! where it is no longer needed.
//!
//! Tables are noted by OID before the statement, as names may change, and updated after it. Nested
//! statements, and those of event triggers, only add to the notes: until the outermost ends, the
//! tables are in use. `dropped` reports what they drop.

use super::noted::{NOTED, Noted};
use super::statement_kind::{AlterCommand, StatementKind};
use super::utility_statement::UtilityStatement;
use super::{dropped, lost_default, new_owners, rules_in_force};
use crate::keys::trigger_placement;
use crate::pg::catalog::inheritance::{Topmost, topmost};
use crate::pg::catalog::object_access::ObjectCallbacks;
use crate::pg::catalog::syntax::Node;
use crate::pg::catalog::{self, names, object_access, roles};
use crate::pg::session::scoped::Scope;
use crate::pg::session::{locks, xact};
use pgrx::pg_sys;
use std::collections::HashSet;

/// What hears of the objects that a statement drops or alters.
const CALLS: ObjectCallbacks = ObjectCallbacks {
    drops_relation: dropped::note,
    drops_extension: dropped::stop_deletion,
    alters_relation: new_owners::note,
};

/// A statement that is tracked.
#[derive(Clone, Copy)]
pub(super) struct Tracked {
    /// What ends the notes, if it is the outermost one.
    notes: Option<Scope>,
}

/// Notes the tables that the statement changes. `None` if it cannot matter here.
pub(super) fn before(statement: &UtilityStatement<'_>) -> Option<Tracked> {
    let relation = statement.relation;
    match statement.kind {
        StatementKind::CreateIndex { unique: true } | StatementKind::CreateTable => {}
        StatementKind::AlterTable | StatementKind::AlterType | StatementKind::DropOwned => {}
        StatementKind::AlterOther | StatementKind::ReassignOwned => {}
        StatementKind::DropIndex
        | StatementKind::DropTrigger
        | StatementKind::DropExtension
        | StatementKind::DropOther => {}
        StatementKind::CreateTrigger { .. } | StatementKind::SetLabel => {}
        _ => return None,
    }
    let outermost = NOTED.is_empty();
    let notes = outermost.then(|| NOTED.enter(Noted::default()));
    match statement.kind {
        StatementKind::CreateIndex { .. } => before_index(statement, outermost),
        StatementKind::CreateTable => {}
        // The trigger comes from a dump, or a user creates it.
        StatementKind::CreateTrigger { replace } => {
            note_extended(relation);
            if !replace && outermost {
                before_trigger(statement);
            }
        }
        // The policy ends.
        StatementKind::SetLabel => note_reduced(relation),
        _ => {
            object_access::install(CALLS);
            if statement.kind == StatementKind::DropExtension {
                dropped::before_drop_extension();
            }
            if outermost
                && matches!(
                    statement.kind,
                    StatementKind::DropExtension | StatementKind::DropOwned
                )
            {
                lost_default::note();
            }
            for command in &statement.commands {
                before_command(statement, command);
            }
        }
    }
    Some(Tracked { notes })
}

/// Adds or removes the trigger on the noted tables.
pub(super) fn after(tracked: Tracked, node: Node<'_>) {
    xact::next_command();
    note_extended(node.cast().and_then(names::created));
    let Some(mut noted) = tracked.notes.and_then(|notes| NOTED.leave(notes)) else {
        return;
    };
    object_access::uninstall();
    // DETACH PARTITION CONCURRENTLY and others leave no snapshot.
    xact::with_snapshot(|| {
        dropped::forget_above(noted.above);
        rules_in_force::after(&noted.rules);
        let dropped = dropped::end_rules(noted.indexes);
        dropped
            .iter()
            .for_each(|&table| trigger_placement::remove_if_lone(table));
        noted.reduced.extend(dropped);
        let is_ours = |table: &pg_sys::Oid| !trigger_placement::is_brought(*table);
        for table in uncovered(noted.reduced).into_iter().filter(is_ours) {
            trigger_placement::sync(table);
        }
        for table in uncovered(noted.extended).into_iter().filter(is_ours) {
            trigger_placement::complete(table);
        }
        lost_default::replace(noted.defaults);
        new_owners::hold(noted.altered);
    });
}

/// The tables without those that another of them covers. PostgreSQL has checked that the current
/// user owns them, unless IF NOT EXISTS skipped the statement.
fn uncovered(mut tables: Vec<pg_sys::Oid>) -> Vec<pg_sys::Oid> {
    tables.sort_unstable_by_key(|table| table.to_u32());
    tables.dedup();
    let user = roles::current_user();
    let all: HashSet<pg_sys::Oid> = tables.iter().copied().collect();
    let mut found = Topmost::default();
    let mut is_topmost = |table| {
        let holds = |table| all.contains(&table);
        let mut topmost = || topmost(table, |_| None, &mut found, holds);
        all.len() == 1 || topmost() == Some(table)
    };
    tables.retain(|&table| {
        catalog::class(table).is_some() && roles::owns_relation(table, user) && is_topmost(table)
    });
    tables
}

/// Called after `scoped::at_abort`. Raises no error.
pub(super) fn at_abort() {
    if NOTED.is_empty() {
        object_access::uninstall();
    }
}

fn note_extended(table: Option<pg_sys::Oid>) {
    NOTED.change(|noted| noted.extended.extend(table));
}

fn note_reduced(table: Option<pg_sys::Oid>) {
    NOTED.change(|noted| noted.reduced.extend(table));
}

/// A script that brings the trigger does not fail where it is already.
fn before_trigger(statement: &UtilityStatement<'_>) {
    if let Some(table) = statement.relation
        && trigger_placement::has(table)
        && roles::owns_relation(table, roles::current_user())
        && statement.take_lock(pg_sys::ShareRowExclusiveLock)
    {
        trigger_placement::remove_own_of_tree(table);
    }
}

/// For a unique index, creates the trigger first: an index that is built concurrently rejects rows
/// long before the statement ends. Its lock is also stronger than the statement's, so it must be
/// taken first.
fn before_index(statement: &UtilityStatement<'_>, outermost: bool) {
    let Some(table) = statement.relation else {
        return;
    };
    // With IF NOT EXISTS the statement may do nothing, and then the trigger is removed again.
    note_reduced(Some(table));
    if outermost
        && trigger_placement::is_wanted_for_unique(table)
        && roles::owns_relation(table, roles::current_user())
        && !trigger_placement::has(table)
        // If the name now means another table, `after` handles it.
        && statement.take_lock(pg_sys::ShareRowExclusiveLock)
    {
        trigger_placement::create_if_missing(table);
    }
}

fn before_command(statement: &UtilityStatement<'_>, command: &AlterCommand) {
    let relation = statement.relation;
    match command {
        AlterCommand::AddColumn
        | AlterCommand::AddConstraint(_)
        | AlterCommand::Triggers { .. } => {
            note_extended(relation);
        }
        AlterCommand::Inherit(_) => note_reduced(relation),
        AlterCommand::Attach(partition) => {
            note_reduced(*partition);
            if let (Some(parent), Some(partition)) = (relation, *partition) {
                before_attach(parent, partition);
            }
        }
        AlterCommand::Detach(partition) => note_reduced(*partition),
        _ => {}
    }
}

/// PostgreSQL clones the parent's trigger to the partition, and fails if the partition has a
/// trigger of that name.
fn before_attach(parent: pg_sys::Oid, partition: pg_sys::Oid) {
    let user = roles::current_user();
    if trigger_placement::has(parent)
        && [parent, partition]
            .iter()
            .all(|&table| roles::owns_relation(table, user))
    {
        // ATTACH PARTITION takes these locks in this order.
        locks::relation(parent, pg_sys::ShareUpdateExclusiveLock);
        locks::relation(partition, pg_sys::AccessExclusiveLock);
        trigger_placement::remove_own_of_tree(partition);
    }
}

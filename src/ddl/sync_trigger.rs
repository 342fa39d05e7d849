//! Adds the trigger that frees keys after a statement by which a table needs it, and removes it
//! where it is no longer needed.
//!
//! Tables are noted by OID before the statement, as names may change, and updated after it. Nested
//! statements, and those of event triggers, only add to the notes: until the outermost ends, the
//! tables are in use. `dropped` reports what they drop.

use super::statement_kind::{AlterCommand, StatementKind};
use super::utility_statement::UtilityStatement;
use super::{dropped, lost_default, new_owners};
use crate::keys::trigger_placement;
use crate::pg::abi::variable::Variable;
use crate::pg::catalog::inheritance::{Topmost, topmost};
use crate::pg::catalog::object_access::ObjectCallbacks;
use crate::pg::catalog::syntax::Node;
use crate::pg::catalog::{self, names, object_access, roles};
use crate::pg::session::{locks, xact};
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;

/// What hears of the objects that a statement drops or alters.
const CALLS: ObjectCallbacks = ObjectCallbacks {
    drops_relation: dropped::note,
    drops_extension: dropped::stop_deletion,
    alters_relation: new_owners::note,
};

/// The tables to which the running statement may add a key, or a trigger.
static TABLES: Variable<RefCell<Vec<pg_sys::Oid>>> = Variable::new(RefCell::new(Vec::new()));
/// The tables that may no longer need the trigger.
static REDUCED: Variable<RefCell<Vec<pg_sys::Oid>>> = Variable::new(RefCell::new(Vec::new()));
/// The transaction nesting level of the outermost statement that is tracked; 0 without one.
static LEVEL: Variable<Cell<i32>> = Variable::new(Cell::new(0));

/// Notes the tables that the statement changes. `None` if it cannot matter here; otherwise whether
/// it is the outermost tracked statement.
pub(super) fn before(statement: &UtilityStatement<'_>) -> Option<bool> {
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
    let outermost = LEVEL.get() == 0;
    if outermost {
        forget_notes();
        LEVEL.set(xact::nest_level());
    }
    match statement.kind {
        StatementKind::CreateIndex { .. } => before_index(statement, outermost),
        StatementKind::CreateTable => {}
        // The trigger comes from a dump, or a user creates it.
        StatementKind::CreateTrigger { replace } => {
            note(&TABLES, relation);
            if !replace && outermost {
                before_trigger(statement);
            }
        }
        // The policy ends.
        StatementKind::SetLabel => note(&REDUCED, relation),
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
    Some(outermost)
}

/// Adds or removes the trigger on the noted tables.
pub(super) fn after(outermost: bool, node: Node<'_>) {
    xact::next_command();
    note(&TABLES, node.cast().and_then(names::created));
    if !outermost {
        return;
    }
    LEVEL.set(0);
    let (tables, mut reduced) = (TABLES.take(), REDUCED.take());
    object_access::uninstall();
    // DETACH PARTITION CONCURRENTLY and others leave no snapshot.
    xact::with_snapshot(|| {
        let dropped = dropped::end_rules();
        dropped
            .iter()
            .for_each(|&table| trigger_placement::remove_if_lone(table));
        reduced.extend(dropped);
        let is_ours = |table: &pg_sys::Oid| !trigger_placement::is_brought(*table);
        for table in uncovered(&reduced).into_iter().filter(is_ours) {
            trigger_placement::sync(table);
        }
        for table in uncovered(&tables).into_iter().filter(is_ours) {
            trigger_placement::complete(table);
        }
        lost_default::replace();
        new_owners::hold();
    });
}

/// The tables without those that another of them covers. PostgreSQL has checked that the current
/// user owns them, unless IF NOT EXISTS skipped the statement.
fn uncovered(tables: &[pg_sys::Oid]) -> Vec<pg_sys::Oid> {
    let user = roles::current_user();
    let all: HashSet<pg_sys::Oid> = tables.iter().copied().collect();
    let mut found = Topmost::default();
    let mut is_topmost = |table| {
        let holds = |table| all.contains(&table);
        let mut topmost = || topmost(table, |_| None, &mut found, holds);
        all.len() == 1 || topmost() == Some(table)
    };
    let mut uncovered = tables.to_vec();
    uncovered.retain(|&table| {
        catalog::class(table).is_some() && roles::owns_relation(table, user) && is_topmost(table)
    });
    uncovered
}

/// Called when everything down to this transaction nesting level is rolled back.
pub(super) fn at_abort(level: i32) {
    if LEVEL.get() >= level {
        forget_notes();
        LEVEL.set(0);
    }
}

fn forget_notes() {
    TABLES.with_borrow_mut(Vec::clear);
    REDUCED.with_borrow_mut(Vec::clear);
    dropped::forget();
    new_owners::forget();
    lost_default::forget();
    object_access::uninstall();
}

fn note(notes: &Variable<RefCell<Vec<pg_sys::Oid>>>, table: Option<pg_sys::Oid>) {
    notes.with_borrow_mut(|tables| {
        if let Some(table) = table.filter(|table| !tables.contains(table)) {
            tables.push(table);
        }
    });
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
    note(&REDUCED, Some(table));
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
            note(&TABLES, relation);
        }
        AlterCommand::Inherit => note(&REDUCED, relation),
        AlterCommand::Attach(partition) => {
            note(&REDUCED, *partition);
            if let (Some(parent), Some(partition)) = (relation, *partition) {
                before_attach(parent, partition);
            }
        }
        AlterCommand::Detach(partition) => note(&REDUCED, *partition),
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

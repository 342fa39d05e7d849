//! Utility statements after which a table may need the trigger, or need it no longer.
//!
//! Before the statement runs, the tables that it concerns are noted, by OID, since
//! names may change; after it ran, each is brought into the right state. Statements
//! that others run on their behalf, and those of event triggers, only add to the
//! notes: in between, the tables are in use. What they drop is told by `dropped`.

use super::dropped;
use super::statement::{Command, Kind, Statement};
use crate::keys::trigger_placement;
use crate::pg::inheritance::{Topmost, topmost};
use crate::pg::syntax::Node;
use crate::pg::{catalog, locks, names, object_access, roles, xact};
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::thread::LocalKey;

thread_local! {
    /// The tables to which the running statement may add a key, or a trigger.
    static TABLES: RefCell<Vec<pg_sys::Oid>> = const { RefCell::new(Vec::new()) };
    /// Those that may need the trigger no longer.
    static REDUCED: RefCell<Vec<pg_sys::Oid>> = const { RefCell::new(Vec::new()) };
    /// The transaction nesting level at which the outermost statement runs that
    /// is followed; 0 when none does.
    static LEVEL: Cell<i32> = const { Cell::new(0) };
}

/// Notes what the statement concerns. `None` if it can change nothing here; else whether
/// none of the statements that it runs within is followed.
pub(super) fn before(statement: &Statement<'_>) -> Option<bool> {
    let relation = statement.relation;
    match statement.kind {
        Kind::CreateIndex { unique: true } | Kind::CreateTable => {}
        Kind::AlterTable | Kind::AlterType | Kind::DropOwned => {}
        Kind::DropIndex | Kind::DropTrigger | Kind::DropExtension | Kind::DropOther => {}
        Kind::CreateTrigger { .. } | Kind::RemoveLabel => {}
        _ => return None,
    }
    let outermost = LEVEL.get() == 0;
    if outermost {
        forget_notes();
        LEVEL.set(xact::nest_level());
    }
    match statement.kind {
        Kind::CreateIndex { .. } => before_index(statement, outermost),
        Kind::CreateTable => {}
        // One that a dump has brought, or somebody has made by hand.
        Kind::CreateTrigger { .. } => note(&TABLES, relation),
        // The policy ends.
        Kind::RemoveLabel => note(&REDUCED, relation),
        _ => {
            object_access::install(dropped::CALLS);
            if statement.kind == Kind::DropExtension {
                dropped::before_drop_extension();
            }
            for command in &statement.commands {
                before_command(statement, command);
            }
        }
    }
    Some(outermost)
}

/// Brings the tables into the right state.
pub(super) fn after(outermost: bool, node: Node<'_>) {
    xact::next_command();
    note(&TABLES, node.cast().and_then(names::created));
    if !outermost {
        return;
    }
    LEVEL.set(0);
    let (tables, mut reduced) = (TABLES.take(), REDUCED.take());
    object_access::uninstall();
    // DETACH PARTITION CONCURRENTLY and the like end without one.
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
    });
}

/// The tables that no other of them stands above, which they follow. PostgreSQL has
/// checked that the current user owns them, unless it did nothing (IF NOT EXISTS).
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

/// An error has ended everything down to this transaction nesting level.
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
    object_access::uninstall();
}

fn note(notes: &'static LocalKey<RefCell<Vec<pg_sys::Oid>>>, table: Option<pg_sys::Oid>) {
    notes.with_borrow_mut(|tables| {
        if let Some(table) = table.filter(|table| !tables.contains(table)) {
            tables.push(table);
        }
    });
}

/// A unique index: the trigger is there before it. One built concurrently refuses
/// rows long before the statement ends. And the lock that the trigger takes is
/// stronger than the statement's: it comes first.
fn before_index(statement: &Statement<'_>, outermost: bool) {
    let Some(table) = statement.relation else {
        return;
    };
    // IF NOT EXISTS: it may turn out not to be needed.
    note(&REDUCED, Some(table));
    if outermost
        && trigger_placement::is_wanted_for_unique(table)
        && roles::owns_relation(table, roles::current_user())
        && !trigger_placement::has(table)
        // If the name has come to mean another table meanwhile, that is seen to afterwards.
        && statement.take_lock(pg_sys::ShareRowExclusiveLock)
    {
        trigger_placement::create_if_missing(table);
    }
}

fn before_command(statement: &Statement<'_>, command: &Command) {
    let relation = statement.relation;
    match command {
        Command::AddColumn | Command::AddConstraint(_) | Command::Triggers { .. } => {
            note(&TABLES, relation);
        }
        Command::Inherit => note(&REDUCED, relation),
        Command::Attach(partition) => {
            note(&REDUCED, *partition);
            if let (Some(parent), Some(partition)) = (relation, *partition) {
                before_attach(parent, partition);
            }
        }
        Command::Detach(partition) => note(&REDUCED, *partition),
        _ => {}
    }
}

/// PostgreSQL clones the trigger of the partitioned table to the partition, and
/// fails if there is one of that name.
fn before_attach(parent: pg_sys::Oid, partition: pg_sys::Oid) {
    let user = roles::current_user();
    if trigger_placement::has(parent)
        && [parent, partition]
            .iter()
            .all(|&table| roles::owns_relation(table, user))
    {
        // The locks that ATTACH PARTITION takes, in its order.
        locks::relation(parent, pg_sys::ShareUpdateExclusiveLock);
        locks::relation(partition, pg_sys::AccessExclusiveLock);
        trigger_placement::remove_own_of_tree(partition);
    }
}

//! Utility statements after which a table may need the trigger, or need it no longer.
//!
//! Before the statement runs, the tables that it concerns are noted, by OID, since
//! names may change; after it ran, each is brought into the right state. Statements
//! that others run on their behalf, and those of event triggers, only add to the
//! notes: in between, the tables are in use. What they drop is told by `dropped`.

use super::columns::{resolve, text};
use super::dropped;
use crate::keys::{TRIGGER_NAME, trigger_placement};
use crate::pg::inheritance::{Topmost, topmost};
use crate::pg::{catalog, lists, locks, nodes, object_access, roles, xact};
use crate::store::{extension, seclabel};
use pgrx::pg_sys::{self, AlterTableType, NodeTag, ObjectType};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::ffi::CStr;
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

/// A statement that is followed.
#[derive(Clone, Copy)]
pub(crate) struct Followed {
    /// None of the statements that it runs within is.
    outermost: bool,
}

/// Notes what the statement concerns. `None` if it can change nothing here, which
/// costs a comparison in a database without the extension.
///
/// # Safety
/// `node` is a statement of the parser.
pub(crate) unsafe fn before(node: *mut pg_sys::Node) -> Option<Followed> {
    // SAFETY: as required of the caller; the node's tag tells its type.
    unsafe {
        // On a standby the statement fails, and PostgreSQL is to say why.
        if !may_concern(node) || pg_sys::IsBinaryUpgrade || pg_sys::RecoveryInProgress() {
            return None;
        }
        extension::functions()?;
        let outermost = LEVEL.get() == 0;
        if outermost {
            forget_notes();
            LEVEL.set(pg_sys::GetCurrentTransactionNestLevel());
        }
        match nodes::tag(node)? {
            NodeTag::T_IndexStmt => before_index(node.cast(), outermost),
            NodeTag::T_AlterTableStmt => {
                object_access::install(dropped::CALLS);
                before_alter_table(node.cast());
            }
            NodeTag::T_DropStmt => {
                object_access::install(dropped::CALLS);
                dropped::before_drop(node.cast());
            }
            NodeTag::T_DropOwnedStmt => object_access::install(dropped::CALLS),
            NodeTag::T_CreateTrigStmt => {
                let stmt = node.cast::<pg_sys::CreateTrigStmt>();
                note(&TABLES, resolve((*stmt).relation));
            }
            NodeTag::T_SecLabelStmt => {
                let names = (*node.cast::<pg_sys::SecLabelStmt>()).object.cast();
                note(&REDUCED, resolve(pg_sys::makeRangeVarFromNameList(names)));
            }
            _ => {}
        }
        Some(Followed { outermost })
    }
}

/// Brings the tables into the right state.
///
/// # Safety
/// `node` is the statement that has been run.
pub(crate) unsafe fn after(followed: Followed, node: *mut pg_sys::Node) {
    // SAFETY: as required of the caller; makes the statement's changes visible.
    unsafe {
        pg_sys::CommandCounterIncrement();
        if nodes::tag(node) == Some(NodeTag::T_CreateStmt) {
            note(&TABLES, created(node.cast()));
        }
    }
    if !followed.outermost {
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
pub(crate) fn at_abort(level: i32) {
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

/// # Safety
/// `node` is a statement of the parser.
unsafe fn may_concern(node: *mut pg_sys::Node) -> bool {
    // SAFETY: the node's tag tells its type.
    unsafe {
        match nodes::tag(node) {
            Some(NodeTag::T_IndexStmt) => (*node.cast::<pg_sys::IndexStmt>()).unique,
            // A table that inherits from none has no policy.
            Some(NodeTag::T_CreateStmt) => {
                !(*node.cast::<pg_sys::CreateStmt>()).inhRelations.is_null()
            }
            Some(NodeTag::T_DropStmt | NodeTag::T_DropOwnedStmt) => true,
            Some(NodeTag::T_AlterTableStmt) => {
                let objtype = (*node.cast::<pg_sys::AlterTableStmt>()).objtype;
                // ALTER TYPE … DROP ATTRIBUTE … CASCADE takes indexes along, too.
                [ObjectType::OBJECT_TABLE, ObjectType::OBJECT_TYPE].contains(&objtype)
            }
            // One that a dump has brought, or somebody has made by hand.
            Some(NodeTag::T_CreateTrigStmt) => {
                text((*node.cast::<pg_sys::CreateTrigStmt>()).trigname) == TRIGGER_NAME
            }
            // The policy ends. One that is given by hand, or by a dump, is guarded.
            Some(NodeTag::T_SecLabelStmt) => {
                let stmt = node.cast::<pg_sys::SecLabelStmt>();
                let provider = (*stmt).provider;
                (*stmt).label.is_null()
                    && (*stmt).objtype == ObjectType::OBJECT_TABLE
                    && (provider.is_null() || CStr::from_ptr(provider) == seclabel::PROVIDER)
            }
            _ => false,
        }
    }
}

/// A unique index: the trigger is there before it. One built concurrently refuses
/// rows long before the statement ends. And the lock that the trigger takes is
/// stronger than the statement's: it comes first.
unsafe fn before_index(stmt: *mut pg_sys::IndexStmt, outermost: bool) {
    // SAFETY: a statement of the parser.
    let Some(table) = (unsafe { resolve((*stmt).relation) }) else {
        return;
    };
    // IF NOT EXISTS: it may turn out not to be needed.
    note(&REDUCED, Some(table));
    if !outermost || !trigger_placement::is_wanted_for_unique(table) {
        return;
    }
    if !roles::owns_relation(table, roles::current_user()) {
        return;
    }
    if trigger_placement::has(table) {
        return;
    }
    locks::relation(table, pg_sys::ShareRowExclusiveLock);
    // SAFETY: as above. The name may have come to mean another table meanwhile,
    // which is then seen to afterwards.
    if unsafe { resolve((*stmt).relation) } == Some(table) {
        trigger_placement::create_if_missing(table);
    }
}

unsafe fn before_alter_table(stmt: *mut pg_sys::AlterTableStmt) {
    // SAFETY: a statement of the parser; the commands' subtypes tell which fields are set.
    unsafe {
        let relation = (*stmt).relation;
        for cmd in lists::iter::<pg_sys::AlterTableCmd>((*stmt).cmds) {
            match (*cmd).subtype {
                AlterTableType::AT_AddColumn
                | AlterTableType::AT_AddConstraint
                | AlterTableType::AT_EnableTrig
                | AlterTableType::AT_EnableTrigAll
                | AlterTableType::AT_EnableTrigUser
                | AlterTableType::AT_EnableReplicaTrig
                | AlterTableType::AT_DisableTrig
                | AlterTableType::AT_DisableTrigAll
                | AlterTableType::AT_DisableTrigUser => note(&TABLES, resolve(relation)),
                AlterTableType::AT_AddInherit | AlterTableType::AT_DropInherit => {
                    note(&REDUCED, resolve(relation));
                }
                AlterTableType::AT_AttachPartition => {
                    let partition = partition(cmd);
                    note(&REDUCED, partition);
                    if let (Some(parent), Some(partition)) = (resolve(relation), partition) {
                        before_attach(parent, partition);
                    }
                }
                AlterTableType::AT_DetachPartition | AlterTableType::AT_DetachPartitionFinalize => {
                    note(&REDUCED, partition(cmd))
                }
                _ => {}
            }
        }
    }
}

/// The table of ATTACH or DETACH PARTITION.
unsafe fn partition(cmd: *mut pg_sys::AlterTableCmd) -> Option<pg_sys::Oid> {
    // SAFETY: the definition of these commands is a PartitionCmd.
    unsafe { resolve((*(*cmd).def.cast::<pg_sys::PartitionCmd>()).name) }
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

/// The table that CREATE TABLE has made. Without a schema its name is looked for
/// where it was made, not along the `search_path`.
unsafe fn created(stmt: *mut pg_sys::CreateStmt) -> Option<pg_sys::Oid> {
    // SAFETY: a statement of the parser that has succeeded.
    let table = unsafe {
        let schema = pg_sys::RangeVarGetCreationNamespace((*stmt).relation);
        pg_sys::get_relname_relid((*(*stmt).relation).relname, schema)
    };
    (table != pg_sys::InvalidOid).then_some(table)
}

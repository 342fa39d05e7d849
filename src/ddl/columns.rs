//! Statements that touch what a policy needs: its columns and indexes.
//!
//! While TTL is on, dropping them by accident is refused (C11). The policy
//! follows the renaming of its columns.

use super::added;
use super::refusal::{Needed, refuse, refuse_as_primary_key, refuse_change};
use crate::pg::{catalog, encoding, lists, roles};
use crate::store::{
    Clock, TablePolicy, cache, expected_indexes, expiry_index, governing_label, label_of, seclabel,
};
use pgrx::pg_sys::{self, AlterTableType, ObjectType};
use std::ffi::{CStr, c_char};
use std::rc::Rc;

/// A column that a statement renames, or an index.
#[derive(Clone, Copy)]
pub(crate) struct Rename {
    relid: pg_sys::Oid,
    /// 0: the relation is an index.
    attno: i16,
    old: [u8; 64],
}

/// A policy that needs its clock and its indexes: TTL is on.
fn active_policy(relid: pg_sys::Oid) -> Option<(Rc<TablePolicy>, Clock)> {
    let policy = cache::policy(relid).filter(|policy| policy.needs_clock())?;
    let clock = policy.clock?;
    Some((policy, clock))
}

/// # Safety
/// `name` is a C string or null.
pub(crate) unsafe fn text(name: *const c_char) -> String {
    if name.is_null() {
        return String::new();
    }
    // SAFETY: as required of the caller.
    unsafe { encoding::from_pointer(name) }
}

/// The relation; `None` if there is none, which PostgreSQL will report. Not
/// locked: the statement will take a strong lock, and a weak one held before it
/// would let two of them wait for each other.
///
/// # Safety
/// `relation` is a RangeVar.
pub(crate) unsafe fn resolve(relation: *mut pg_sys::RangeVar) -> Option<pg_sys::Oid> {
    let (no_lock, missing_ok) = (
        pg_sys::NoLock.cast_signed(),
        pg_sys::RVROption::RVR_MISSING_OK,
    );
    // SAFETY: a RangeVar of the statement.
    let relid = unsafe {
        pg_sys::RangeVarGetRelidExtended(relation, no_lock, missing_ok, None, core::ptr::null_mut())
    };
    (relid != pg_sys::InvalidOid).then_some(relid)
}

/// Refuses `DROP INDEX` of an index that deletion works from, if no other serves.
///
/// # Safety
/// `stmt` is a statement of the parser.
pub(crate) unsafe fn check_drop(stmt: *mut pg_sys::DropStmt) {
    // SAFETY: the objects of DROP INDEX are lists of names.
    unsafe {
        if (*stmt).removeType != ObjectType::OBJECT_INDEX || !crate::store::extension::is_present()
        {
            return;
        }
        let dropped: Vec<pg_sys::Oid> = lists::iter::<pg_sys::List>((*stmt).objects)
            .filter_map(|names| resolve_index(pg_sys::makeRangeVarFromNameList(names)))
            .collect();
        for &dropping in &dropped {
            let table = pg_sys::IndexGetRelation(dropping, true);
            let Some((policy, clock)) = active_policy(table) else {
                continue;
            };
            // `pg_restore --clean`: the table goes next.
            if roles::reads_physically(table) {
                continue;
            }
            for wanted in expected_indexes(&policy) {
                let serving = expiry_index::find(table, wanted, &clock.ts, clock.ttl.as_ref());
                if serving.contains(&dropping) && serving.iter().all(|i| dropped.contains(i)) {
                    let name = catalog::quote_identifier(&catalog::relation_name(dropping));
                    let what = format!("drop index {name}");
                    refuse(&what, Needed::Index, table, policy.labelled_table);
                }
            }
        }
    }
}

/// # Safety
/// As [`resolve`].
pub(crate) unsafe fn resolve_index(name: *mut pg_sys::RangeVar) -> Option<pg_sys::Oid> {
    // SAFETY: a RangeVar made from the statement's names.
    let index = unsafe { resolve(name)? };
    let relkind = catalog::class(index)?.relkind;
    [pg_sys::RELKIND_INDEX, pg_sys::RELKIND_PARTITIONED_INDEX]
        .contains(&relkind)
        .then_some(index)
}

/// What a statement does to a column.
const DROP: &str = "drop";
const RETYPE: &str = "alter type of";

/// Refuses to drop, or to change the type of, a column that a policy needs, and to
/// let the override no longer follow its document (D1).
///
/// # Safety
/// `stmt` is a statement of the parser.
pub(crate) unsafe fn check_alter_table(stmt: *mut pg_sys::AlterTableStmt) {
    // SAFETY: the commands' subtypes tell which fields are set.
    unsafe {
        if (*stmt).objtype != ObjectType::OBJECT_TABLE || !crate::store::extension::is_present() {
            return;
        }
        refuse_primary_key(stmt);
        let touching: Vec<(String, &str)> = lists::iter::<pg_sys::AlterTableCmd>((*stmt).cmds)
            .filter_map(|cmd| match (*cmd).subtype {
                AlterTableType::AT_DropColumn => Some((text((*cmd).name), DROP)),
                AlterTableType::AT_AlterColumnType => Some((text((*cmd).name), RETYPE)),
                AlterTableType::AT_DropExpression => {
                    Some((text((*cmd).name), "drop expression of"))
                }
                #[cfg(not(any(feature = "pg15", feature = "pg16")))]
                AlterTableType::AT_SetExpression => {
                    Some((text((*cmd).name), "alter expression of"))
                }
                _ => None,
            })
            .collect();
        if touching.is_empty() {
            return;
        }
        let Some(relid) = resolve((*stmt).relation) else {
            return;
        };
        for table in catalog::all_inheritors(relid) {
            let Some(policy) = cache::policy(table) else {
                continue;
            };
            let Some(label) = governing_label(table).map(|label| label.policy) else {
                continue;
            };
            // With TTL off the clock may go; but a policy without the columns that it
            // names is not in force, and rows that expired by a TTL index would live again.
            let needs_clock = policy.needs_clock() || !label.rules.is_empty();
            let of_clock = |name: &str| needs_clock && label.columns().any(|c| c == name);
            // A column goes with its index, and so ends the rule (M8).
            let of_rule = |name: &str, verb: &str| {
                let mut rules = policy.rules.iter().filter(|_| verb != DROP);
                rules.find(|rule| rule.column_name == name)
            };
            for (name, verb) in &touching {
                let what = format!("{verb} column {}", catalog::quote_identifier(name));
                if of_clock(name) {
                    let needed = match *verb {
                        DROP => Needed::Column(name),
                        RETYPE => Needed::Type,
                        _ => Needed::Expression,
                    };
                    refuse(&what, needed, table, policy.labelled_table);
                }
                if let Some(rule) = of_rule(name, verb) {
                    refuse_change(&what, table, policy.labelled_table, &rule.index);
                }
            }
        }
        let drops = touching.iter().filter(|(_, verb)| *verb == DROP);
        let dropped: Vec<&str> = drops.map(|(name, _)| name.as_str()).collect();
        if !dropped.is_empty() {
            added::forget_columns(relid, &dropped);
        }
    }
}

/// Refuses ADD PRIMARY KEY USING INDEX of a TTL index: by a primary key no row expires
/// (M7), and those that have would live again.
///
/// # Safety
/// `stmt` is a statement of the parser.
unsafe fn refuse_primary_key(stmt: *mut pg_sys::AlterTableStmt) {
    // SAFETY: as required of the caller; the definition of this command is a Constraint.
    unsafe {
        for cmd in lists::iter::<pg_sys::AlterTableCmd>((*stmt).cmds) {
            if (*cmd).subtype != AlterTableType::AT_AddConstraint {
                continue;
            }
            let constraint = (*cmd).def.cast::<pg_sys::Constraint>();
            if (*constraint).contype != pg_sys::ConstrType::CONSTR_PRIMARY
                || (*constraint).indexname.is_null()
            {
                continue;
            }
            let Some(table) = resolve((*stmt).relation) else {
                return;
            };
            let name = text((*constraint).indexname);
            if label_of(table).is_some_and(|policy| policy.rule(&name).is_some()) {
                let shown = catalog::quote_identifier(&name);
                let what = format!("make index {shown} a primary key");
                refuse_as_primary_key(&what, table, &name);
            }
        }
    }
}

/// The table whose place in an inheritance tree a statement is about to change:
/// policies are inherited, so what sessions know of it is to be forgotten.
///
/// # Safety
/// `stmt` is a statement of the parser.
pub(crate) unsafe fn reparented(stmt: *mut pg_sys::AlterTableStmt) -> Option<pg_sys::Oid> {
    let changes = [
        AlterTableType::AT_AddInherit,
        AlterTableType::AT_DropInherit,
        AlterTableType::AT_AttachPartition,
        AlterTableType::AT_DetachPartition,
        AlterTableType::AT_DetachPartitionFinalize,
    ];
    // SAFETY: as required of the caller.
    unsafe {
        crate::store::extension::functions()?;
        lists::iter::<pg_sys::AlterTableCmd>((*stmt).cmds)
            .any(|cmd| changes.contains(&(*cmd).subtype))
            .then(|| resolve((*stmt).relation))?
            // ALTER INDEX ... ATTACH PARTITION: whether a TTL index is valid.
            .map(table_of)
    }
}

/// The table of an ALTER TABLE, and the partition that it attaches or detaches, whose
/// foreign keys it may check.
///
/// # Safety
/// `stmt` is a statement of the parser.
pub(crate) unsafe fn validated(stmt: *mut pg_sys::AlterTableStmt) -> [Option<pg_sys::Oid>; 2] {
    if !crate::store::extension::is_present() {
        return [None; 2];
    }
    let changes = [
        AlterTableType::AT_AttachPartition,
        AlterTableType::AT_DetachPartition,
        AlterTableType::AT_DetachPartitionFinalize,
    ];
    // SAFETY: as required of the caller; such a command names a partition. They come alone.
    unsafe {
        let partition = lists::iter::<pg_sys::AlterTableCmd>((*stmt).cmds)
            .find(|cmd| changes.contains(&(**cmd).subtype))
            .and_then(|cmd| resolve((*(*cmd).def.cast::<pg_sys::PartitionCmd>()).name));
        [resolve((*stmt).relation), partition]
    }
}

/// The table of an index; another relation itself.
fn table_of(relid: pg_sys::Oid) -> pg_sys::Oid {
    // SAFETY: a syscache look-up.
    match unsafe { pg_sys::IndexGetRelation(relid, true) } {
        pg_sys::InvalidOid => relid,
        table => table,
    }
}

/// Forgets what sessions know of the relation, its ancestors and its heirs.
pub(crate) fn forget(relid: pg_sys::Oid) {
    // SAFETY: makes the statement's changes visible, within a transaction.
    unsafe { pg_sys::CommandCounterIncrement() };
    seclabel::invalidate(relid);
}

/// Notes which column a statement is about to rename, or which index that `ttl.enable` built.
///
/// # Safety
/// `stmt` is a statement of the parser.
pub(crate) unsafe fn noted_rename(stmt: *mut pg_sys::RenameStmt) -> Option<Rename> {
    // SAFETY: a rename of a column, an index or a table has a relation.
    unsafe {
        if (*stmt).relation.is_null() {
            return None;
        }
        crate::store::extension::functions()?;
        let (relid, attno, old_name) = match (*stmt).renameType {
            ObjectType::OBJECT_COLUMN => {
                let relid = resolve((*stmt).relation)?;
                let name = text((*stmt).subname);
                (relid, catalog::attribute(relid, &name)?.attno, name)
            }
            // ALTER TABLE renames indexes, too.
            ObjectType::OBJECT_INDEX | ObjectType::OBJECT_TABLE => {
                let index = resolve_index((*stmt).relation)?;
                let name = catalog::relation_name(index);
                if !added::is_index(table_of(index), &name) {
                    return None;
                }
                (index, 0, name)
            }
            _ => return None,
        };
        let old_name = encoding::to_server(&old_name)?;
        let old_name = old_name.as_bytes_with_nul();
        let mut old = [0; 64];
        old.get_mut(..old_name.len())?.copy_from_slice(old_name);
        Some(Rename { relid, attno, old })
    }
}

/// Puts the new name into the labels of the table and its heirs.
pub(crate) fn follow_rename(rename: Rename) {
    let old = CStr::from_bytes_until_nul(&rename.old).map_or(String::new(), encoding::from_server);
    // SAFETY: makes the rename visible; the name is a palloc'd C string or null.
    let new = unsafe {
        pg_sys::CommandCounterIncrement();
        match rename.attno {
            0 => catalog::relation_name(rename.relid),
            attno => text(pg_sys::get_attname(rename.relid, attno, true)),
        }
    };
    if new.is_empty() {
        return;
    }
    if rename.attno == 0 {
        added::rename_index(table_of(rename.relid), &old, &new);
        return;
    }
    for relid in catalog::all_inheritors(rename.relid) {
        let Some(mut policy) = label_of(relid) else {
            continue;
        };
        if policy.rename_column(&old, &new) {
            seclabel::set(relid, Some(&policy.to_label()));
        }
    }
}

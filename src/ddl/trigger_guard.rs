//! Utility statements that would take the trigger away while TTL needs it.
//!
//! `DISABLE TRIGGER ALL` is not refused, since dumps say it: the trigger is enabled
//! again at once (`follow.rs`).

use super::columns::{resolve, text};
use super::refusal::{Needed, refuse};
use crate::keys::{TRIGGER_NAME, trigger_placement};
use crate::pg::{catalog, lists, nodes, roles};
use crate::store::{cache, extension};
use pgrx::pg_sys::{self, AlterTableType, NodeTag, ObjectType};

/// Refuses to drop, disable, rename or replace the trigger by its name.
///
/// # Safety
/// `node` is a statement of the parser.
pub(crate) unsafe fn check(node: *mut pg_sys::Node) {
    // SAFETY: the node's tag tells its type.
    unsafe {
        match nodes::tag(node) {
            Some(NodeTag::T_DropStmt) => check_drop(node.cast()),
            Some(NodeTag::T_AlterTableStmt) => check_alter_table(node.cast()),
            Some(NodeTag::T_RenameStmt) => {
                let stmt = node.cast::<pg_sys::RenameStmt>();
                if (*stmt).renameType == ObjectType::OBJECT_TRIGGER
                    && text((*stmt).subname) == TRIGGER_NAME
                {
                    check_table("rename", (*stmt).relation);
                }
            }
            Some(NodeTag::T_CreateTrigStmt) => {
                let stmt = node.cast::<pg_sys::CreateTrigStmt>();
                if (*stmt).replace && text((*stmt).trigname) == TRIGGER_NAME {
                    check_table("replace", (*stmt).relation);
                }
            }
            _ => {}
        }
    }
}

unsafe fn check_drop(stmt: *mut pg_sys::DropStmt) {
    // SAFETY: a trigger is named by the names of its table and, last, its own.
    unsafe {
        if (*stmt).removeType != ObjectType::OBJECT_TRIGGER {
            return;
        }
        for names in lists::iter::<pg_sys::List>((*stmt).objects) {
            let Some(last) = lists::iter::<pg_sys::String>(names).next_back() else {
                continue;
            };
            if text((*last).sval) == TRIGGER_NAME && (*names).length > 1 {
                let table = pg_sys::list_truncate(pg_sys::list_copy(names), (*names).length - 1);
                check_table("drop", pg_sys::makeRangeVarFromNameList(table));
            }
        }
    }
}

unsafe fn check_alter_table(stmt: *mut pg_sys::AlterTableStmt) {
    // SAFETY: the commands' subtypes tell which fields are set.
    unsafe {
        for cmd in lists::iter::<pg_sys::AlterTableCmd>((*stmt).cmds) {
            let disables = matches!(
                (*cmd).subtype,
                AlterTableType::AT_DisableTrig | AlterTableType::AT_EnableReplicaTrig
            );
            if disables && text((*cmd).name) == TRIGGER_NAME {
                check_table("disable", (*stmt).relation);
            }
        }
    }
}

/// Raises an error if the table has the trigger, and TTL is on.
unsafe fn check_table(verb: &str, relation: *mut pg_sys::RangeVar) {
    if !extension::is_present() {
        return;
    }
    // SAFETY: a RangeVar of the statement.
    let Some(table) = (unsafe { resolve(relation) }) else {
        return;
    };
    // `pg_restore --clean` drops it before the table.
    if !trigger_placement::has(table)
        || trigger_placement::placement(table) == trigger_placement::Placement::Absent
        || roles::reads_physically(table)
    {
        return;
    }
    if let Some(policy) = cache::policy(table) {
        let name = catalog::quote_identifier(TRIGGER_NAME);
        let what = format!("{verb} trigger {name}");
        refuse(&what, Needed::Trigger, table, policy.labelled_table);
    }
}

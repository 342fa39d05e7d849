//! The parser's nodes: what a utility statement is, names and does.

use super::statement::{Command, Kind, resolve};
use crate::keys::TRIGGER_NAME;
use crate::pg::{encoding, lists, nodes};
use crate::store::{extension, seclabel};
use pgrx::pg_sys::{self, AlterTableType, NodeTag, ObjectType, RangeVar};
use std::ffi::{CStr, c_char};

/// What the statement is; `None` for one that cannot concern a time to live.
///
/// # Safety
/// `node` is a utility statement of the parser.
pub(super) unsafe fn kind(node: *mut pg_sys::Node) -> Option<Kind> {
    // SAFETY: the node's tag tells its type.
    unsafe {
        Some(match nodes::tag(node)? {
            NodeTag::T_IndexStmt => Kind::CreateIndex {
                unique: (*node.cast::<pg_sys::IndexStmt>()).unique,
            },
            NodeTag::T_ReindexStmt => Kind::Reindex,
            NodeTag::T_CreateStmt
                if !(*node.cast::<pg_sys::CreateStmt>()).inhRelations.is_null() =>
            {
                Kind::CreateTable
            }
            NodeTag::T_AlterTableStmt => match (*node.cast::<pg_sys::AlterTableStmt>()).objtype {
                ObjectType::OBJECT_TABLE => Kind::AlterTable,
                ObjectType::OBJECT_TYPE => Kind::AlterType,
                _ => Kind::AlterOther,
            },
            NodeTag::T_DropStmt => {
                let stmt = node.cast::<pg_sys::DropStmt>();
                match (*stmt).removeType {
                    ObjectType::OBJECT_INDEX => Kind::DropIndex,
                    ObjectType::OBJECT_TRIGGER if drops_trigger(stmt).is_some() => {
                        Kind::DropTrigger
                    }
                    ObjectType::OBJECT_EXTENSION if drops_extension(stmt) => Kind::DropExtension,
                    _ => Kind::DropOther,
                }
            }
            NodeTag::T_DropOwnedStmt => Kind::DropOwned,
            NodeTag::T_RenameStmt => {
                let stmt = node.cast::<pg_sys::RenameStmt>();
                match (*stmt).renameType {
                    ObjectType::OBJECT_COLUMN => Kind::RenameColumn,
                    // ALTER TABLE renames indexes, too.
                    ObjectType::OBJECT_INDEX | ObjectType::OBJECT_TABLE => Kind::RenameRelation,
                    ObjectType::OBJECT_TABCONSTRAINT => Kind::RenameConstraint,
                    ObjectType::OBJECT_TRIGGER if is_ours((*stmt).subname) => Kind::RenameTrigger,
                    _ => return None,
                }
            }
            NodeTag::T_CreateTrigStmt => {
                let stmt = node.cast::<pg_sys::CreateTrigStmt>();
                is_ours((*stmt).trigname).then_some(Kind::CreateTrigger {
                    replace: (*stmt).replace,
                })?
            }
            NodeTag::T_SecLabelStmt => {
                let stmt = node.cast::<pg_sys::SecLabelStmt>();
                let provider = (*stmt).provider;
                let removes = (*stmt).label.is_null()
                    && (*stmt).objtype == ObjectType::OBJECT_TABLE
                    && (provider.is_null() || CStr::from_ptr(provider) == seclabel::PROVIDER);
                removes.then_some(Kind::RemoveLabel)?
            }
            _ => return None,
        })
    }
}

/// The relation that the statement names, or null. Of CREATE TABLE, the first parent.
///
/// # Safety
/// `node` is a statement of that kind.
pub(super) unsafe fn name(kind: Kind, node: *mut pg_sys::Node) -> *mut RangeVar {
    // SAFETY: the kind tells the node's type.
    unsafe {
        match kind {
            Kind::CreateIndex { .. } => (*node.cast::<pg_sys::IndexStmt>()).relation,
            Kind::Reindex => (*node.cast::<pg_sys::ReindexStmt>()).relation,
            Kind::CreateTable => {
                let parents = (*node.cast::<pg_sys::CreateStmt>()).inhRelations;
                lists::nth::<RangeVar>(parents, 0).unwrap_or(core::ptr::null_mut())
            }
            Kind::AlterTable | Kind::AlterType | Kind::AlterOther => {
                (*node.cast::<pg_sys::AlterTableStmt>()).relation
            }
            Kind::RenameColumn
            | Kind::RenameRelation
            | Kind::RenameConstraint
            | Kind::RenameTrigger => (*node.cast::<pg_sys::RenameStmt>()).relation,
            Kind::CreateTrigger { .. } => (*node.cast::<pg_sys::CreateTrigStmt>()).relation,
            Kind::RemoveLabel => {
                let names = (*node.cast::<pg_sys::SecLabelStmt>()).object.cast();
                pg_sys::makeRangeVarFromNameList(names)
            }
            Kind::DropTrigger => drops_trigger(node.cast()).unwrap_or(core::ptr::null_mut()),
            Kind::DropIndex | Kind::DropExtension | Kind::DropOther | Kind::DropOwned => {
                core::ptr::null_mut()
            }
        }
    }
}

/// # Safety
/// A command of ALTER TABLE.
pub(super) unsafe fn command(command: *mut pg_sys::AlterTableCmd) -> Command {
    // SAFETY: the command's subtype tells which fields are set.
    unsafe {
        let name = (*command).name;
        let definition = (*command).def;
        match (*command).subtype {
            AlterTableType::AT_AddColumn => Command::AddColumn,
            AlterTableType::AT_DropColumn => Command::DropColumn(text(name)),
            AlterTableType::AT_AlterColumnType => Command::AlterType(text(name)),
            AlterTableType::AT_DropExpression => Command::Expression("drop", text(name)),
            #[cfg(not(any(feature = "pg15", feature = "pg16")))]
            AlterTableType::AT_SetExpression => Command::Expression("alter", text(name)),
            AlterTableType::AT_AddConstraint => {
                let constraint = definition.cast::<pg_sys::Constraint>().as_ref();
                let key = constraint.filter(|constraint| {
                    constraint.contype == pg_sys::ConstrType::CONSTR_PRIMARY
                        && !constraint.indexname.is_null()
                });
                Command::AddConstraint(key.map(|key| text(key.indexname)))
            }
            AlterTableType::AT_DropConstraint => Command::DropConstraint(text(name)),
            AlterTableType::AT_DisableTrig | AlterTableType::AT_EnableReplicaTrig => {
                Command::Triggers {
                    takes_ours: is_ours(name),
                }
            }
            AlterTableType::AT_EnableTrig
            | AlterTableType::AT_EnableTrigAll
            | AlterTableType::AT_EnableTrigUser
            | AlterTableType::AT_DisableTrigAll
            | AlterTableType::AT_DisableTrigUser => Command::Triggers { takes_ours: false },
            AlterTableType::AT_AddInherit | AlterTableType::AT_DropInherit => Command::Inherit,
            AlterTableType::AT_AttachPartition => Command::Attach(partition(definition)),
            AlterTableType::AT_DetachPartition | AlterTableType::AT_DetachPartitionFinalize => {
                Command::Detach(partition(definition))
            }
            _ => Command::Other,
        }
    }
}

/// # Safety
/// The definition of ATTACH or DETACH PARTITION.
unsafe fn partition(definition: *mut pg_sys::Node) -> Option<pg_sys::Oid> {
    // SAFETY: as required of the caller.
    unsafe {
        let command = definition.cast::<pg_sys::PartitionCmd>().as_ref()?;
        resolve(command.name)
    }
}

/// The table of the trigger that frees keys, if the statement drops that. PostgreSQL drops
/// one trigger at a time.
///
/// # Safety
/// A DROP TRIGGER.
unsafe fn drops_trigger(stmt: *mut pg_sys::DropStmt) -> Option<*mut RangeVar> {
    // SAFETY: a trigger is named by the names of its table and, last, its own.
    unsafe {
        let names = lists::nth::<pg_sys::List>((*stmt).objects, 0)?;
        let last = lists::iter::<pg_sys::String>(names).next_back()?;
        let names_it = (*names).length > 1 && is_ours((*last).sval);
        names_it.then(|| {
            let table = pg_sys::list_truncate(pg_sys::list_copy(names), (*names).length - 1);
            pg_sys::makeRangeVarFromNameList(table)
        })
    }
}

/// # Safety
/// A DROP EXTENSION.
unsafe fn drops_extension(stmt: *mut pg_sys::DropStmt) -> bool {
    // SAFETY: the objects are names.
    unsafe {
        lists::iter::<pg_sys::String>((*stmt).objects)
            .any(|name| CStr::from_ptr((*name).sval) == extension::NAME)
    }
}

/// Whether it is the name of the trigger that frees keys.
///
/// # Safety
/// `name` is a C string or null.
unsafe fn is_ours(name: *const c_char) -> bool {
    // SAFETY: as required of the caller.
    !name.is_null() && unsafe { CStr::from_ptr(name) }.to_bytes() == TRIGGER_NAME.as_bytes()
}

/// # Safety
/// `name` is a C string or null.
pub(super) unsafe fn text(name: *const c_char) -> String {
    if name.is_null() {
        return String::new();
    }
    // SAFETY: as required of the caller.
    unsafe { encoding::from_pointer(name) }
}

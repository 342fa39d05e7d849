//! Reads the parser's nodes: what a utility statement is, names and does.

use super::statement_kind::{AlterCommand, StatementKind};
use crate::citus;
use crate::keys::TRIGGER_NAME;
use crate::pg::abi::encoding;
use crate::pg::catalog::names::{self, RelationName};
use crate::pg::catalog::syntax::Node;
use crate::store::{extension, seclabel};
use pgrx::pg_sys::{
    self, AlterObjectSchemaStmt, AlterTableCmd, AlterTableStmt, AlterTableType, ColumnDef,
    ConstrType, Constraint, CreateStmt, CreateTrigStmt, DropStmt, IndexStmt, List, NodeTag,
    ObjectType, PartitionCmd, ReindexStmt, RenameStmt, SecLabelStmt,
};
use std::ffi::CStr;

/// What the statement is, and the relation that it names (CREATE TABLE: the first parent); `None`
/// for one that cannot affect TTL.
pub(super) fn kind(node: Node<'_>) -> Option<(StatementKind, Option<RelationName<'_>>)> {
    let mut name = None;
    let kind = match node.type_ {
        NodeTag::T_IndexStmt => {
            let stmt = node.cast::<IndexStmt>()?;
            name = stmt.node(|it| &it.relation);
            let unique = stmt.unique;
            StatementKind::CreateIndex { unique }
        }
        NodeTag::T_ReindexStmt => {
            name = node.cast::<ReindexStmt>()?.node(|it| &it.relation);
            StatementKind::Reindex
        }
        NodeTag::T_CreateStmt => {
            let mut parents = node.cast::<CreateStmt>()?.list(|it| &it.inhRelations);
            name = Some(parents.next()?);
            StatementKind::CreateTable
        }
        NodeTag::T_AlterTableStmt => {
            let stmt = node.cast::<AlterTableStmt>()?;
            name = stmt.node(|it| &it.relation);
            match stmt.objtype {
                ObjectType::OBJECT_TABLE => StatementKind::AlterTable,
                ObjectType::OBJECT_TYPE => StatementKind::AlterType,
                _ => StatementKind::AlterOther,
            }
        }
        NodeTag::T_DropStmt => {
            let stmt = node.cast::<DropStmt>()?;
            match (stmt.removeType, drops_trigger(stmt)) {
                (ObjectType::OBJECT_INDEX, _) => StatementKind::DropIndex,
                (ObjectType::OBJECT_TRIGGER, table @ Some(_)) => {
                    return Some((StatementKind::DropTrigger, table));
                }
                (ObjectType::OBJECT_EXTENSION, _) if drops_extension(stmt) => {
                    StatementKind::DropExtension
                }
                _ => StatementKind::DropOther,
            }
        }
        NodeTag::T_DropOwnedStmt => StatementKind::DropOwned,
        NodeTag::T_ReassignOwnedStmt => StatementKind::ReassignOwned,
        NodeTag::T_RenameStmt => {
            let stmt = node.cast::<RenameStmt>()?;
            name = stmt.node(|it| &it.relation);
            match stmt.renameType {
                ObjectType::OBJECT_COLUMN => StatementKind::RenameColumn,
                // ALTER TABLE … RENAME also renames indexes.
                ObjectType::OBJECT_INDEX | ObjectType::OBJECT_TABLE => {
                    StatementKind::RenameRelation
                }
                ObjectType::OBJECT_TABCONSTRAINT => StatementKind::RenameConstraint,
                ObjectType::OBJECT_TRIGGER if is_ours(stmt.text(|it| &it.subname)) => {
                    StatementKind::RenameTrigger
                }
                _ => return None,
            }
        }
        NodeTag::T_CreateTrigStmt => {
            let stmt = node.cast::<CreateTrigStmt>()?;
            name = stmt.node(|it| &it.relation);
            let replace = stmt.replace;
            is_ours(stmt.text(|it| &it.trigname))
                .then_some(StatementKind::CreateTrigger { replace })?
        }
        NodeTag::T_AlterObjectSchemaStmt if !citus::is_known_to_be_absent() => {
            let stmt = node.cast::<AlterObjectSchemaStmt>()?;
            name = stmt.node(|it| &it.relation);
            (stmt.objectType == ObjectType::OBJECT_TABLE).then_some(StatementKind::SetSchema)?
        }
        NodeTag::T_SecLabelStmt => {
            let stmt = node.cast::<SecLabelStmt>()?;
            let is_ours = stmt.objtype == ObjectType::OBJECT_TABLE && seclabel::is_ours(stmt);
            let names = stmt.node(|it| &it.object).filter(|_| is_ours)?;
            let names = names.cast::<List>()?;
            let name = RelationName::Parts(names, names.length);
            // A table of Citus gets its label by such a statement, on each node.
            let is_shell = || name.resolve().is_some_and(citus::is_shell);
            if stmt.label.is_null() || !citus::is_known_to_be_absent() && is_shell() {
                return Some((StatementKind::SetLabel, Some(name)));
            }
            return None;
        }
        _ => return None,
    };
    Some((kind, name.map(RelationName::Range)))
}

pub(super) fn command(command: Node<'_, AlterTableCmd>) -> AlterCommand {
    let name = || text(command.text(|command| &command.name));
    let definition = command.node(|command| &command.def);
    match command.subtype {
        AlterTableType::AT_AddColumn => AlterCommand::AddColumn,
        AlterTableType::AT_DropColumn => AlterCommand::DropColumn(name()),
        AlterTableType::AT_AlterColumnType => {
            let column = definition.and_then(Node::cast::<ColumnDef>);
            let plain = column.filter(|column| column.node(|it| &it.raw_default).is_none());
            let type_name = plain.and_then(|column| column.node(|it| &it.typeName));
            AlterCommand::AlterType(name(), type_name.and_then(names::named_type))
        }
        AlterTableType::AT_DropNotNull => AlterCommand::DropNotNull(name()),
        AlterTableType::AT_DropExpression => AlterCommand::Expression("drop", name()),
        #[cfg(since17)]
        AlterTableType::AT_SetExpression => AlterCommand::Expression("alter", name()),
        AlterTableType::AT_AddConstraint => {
            let key = definition
                .and_then(Node::cast::<Constraint>)
                .filter(|constraint| constraint.contype == ConstrType::CONSTR_PRIMARY)
                .and_then(|constraint| constraint.text(|constraint| &constraint.indexname));
            AlterCommand::AddConstraint(key.map(encoding::from_server))
        }
        AlterTableType::AT_DropConstraint => AlterCommand::DropConstraint(name()),
        // A CHECK that is not enforced is as good as dropped.
        #[cfg(since19)]
        AlterTableType::AT_AlterConstraint => {
            let change = definition.and_then(Node::cast::<pg_sys::ATAlterConstraint>);
            change
                .filter(|change| change.alterEnforceability && !change.is_enforced)
                .map_or(AlterCommand::Other, |change| {
                    AlterCommand::DropConstraint(text(change.text(|change| &change.conname)))
                })
        }
        AlterTableType::AT_DisableTrig | AlterTableType::AT_EnableReplicaTrig => {
            AlterCommand::Triggers {
                takes_ours: is_ours(command.text(|command| &command.name)),
            }
        }
        AlterTableType::AT_EnableTrig
        | AlterTableType::AT_EnableTrigAll
        | AlterTableType::AT_EnableTrigUser
        | AlterTableType::AT_DisableTrigAll
        | AlterTableType::AT_DisableTrigUser => AlterCommand::Triggers { takes_ours: false },
        AlterTableType::AT_SetAccessMethod if name() == "columnar" => AlterCommand::Columnar,
        AlterTableType::AT_AddInherit => {
            let parent = definition.and_then(Node::cast);
            AlterCommand::Inherit(parent.and_then(|parent| RelationName::Range(parent).resolve()))
        }
        AlterTableType::AT_DropInherit => AlterCommand::Inherit(None),
        AlterTableType::AT_AttachPartition => AlterCommand::Attach(partition(definition)),
        AlterTableType::AT_DetachPartition | AlterTableType::AT_DetachPartitionFinalize => {
            AlterCommand::Detach(partition(definition))
        }
        _ => AlterCommand::Other,
    }
}

/// The partition of ATTACH or DETACH PARTITION.
fn partition(definition: Option<Node<'_>>) -> Option<pg_sys::Oid> {
    let command = definition?.cast::<PartitionCmd>()?;
    RelationName::Range(command.node(|command| &command.name)?).resolve()
}

/// The table, if a DROP TRIGGER names the trigger that frees keys. The statement drops only one
/// trigger.
fn drops_trigger(stmt: Node<'_, DropStmt>) -> Option<RelationName<'_>> {
    // The list has the parts of the table's name, then the trigger's name.
    let names = stmt.list::<List>(|stmt| &stmt.objects).next()?;
    let last = names.items::<pg_sys::String>().next_back()?;
    (names.length > 1 && is_ours(last.text(|name| &name.sval)))
        .then_some(RelationName::Parts(names, names.length - 1))
}

fn drops_extension(stmt: Node<'_, DropStmt>) -> bool {
    stmt.list::<pg_sys::String>(|stmt| &stmt.objects)
        .any(|name| name.text(|name| &name.sval) == Some(extension::NAME))
}

/// Whether it is the name of the trigger that frees keys.
fn is_ours(name: Option<&CStr>) -> bool {
    name.is_some_and(|name| name.to_bytes() == TRIGGER_NAME.as_bytes())
}

pub(super) fn text(name: Option<&CStr>) -> String {
    name.map_or(String::new(), encoding::from_server)
}

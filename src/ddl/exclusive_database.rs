//! Statements that PostgreSQL runs only if no other session is connected to a database.

use crate::pg::catalog::syntax::Node;
use crate::pg::catalog::{databases, names, roles};
use crate::pg::server::background;
use pgrx::pg_sys::{self, DefElem, NodeTag, ObjectType};

/// The database that must have no other connections for the statement to run.
pub(crate) fn wanted_database(node: Node<'_>) -> Option<u32> {
    let oid = match node.type_ {
        NodeTag::T_DropdbStmt => {
            databases::oid(node.cast::<pg_sys::DropdbStmt>()?.text(|it| &it.dbname)?)?
        }
        NodeTag::T_AlterDatabaseStmt => {
            let stmt = node.cast::<pg_sys::AlterDatabaseStmt>()?;
            let wanting = [c"tablespace", c"allow_connections", c"is_template"];
            let is_wanting = |name| wanting.contains(&name);
            let mut options = stmt.list::<DefElem>(|stmt| &stmt.options);
            options.find(|it| it.text(|it| &it.defname).is_some_and(is_wanting))?;
            databases::oid(stmt.text(|stmt| &stmt.dbname)?)?
        }
        NodeTag::T_RenameStmt => {
            let stmt = node.cast::<pg_sys::RenameStmt>()?;
            if stmt.renameType != ObjectType::OBJECT_DATABASE {
                return None;
            }
            databases::oid(stmt.text(|stmt| &stmt.subname)?)?
        }
        // CREATE DATABASE copies the template, which may be the current database.
        NodeTag::T_CreatedbStmt => {
            let stmt = node.cast::<pg_sys::CreatedbStmt>()?;
            let mut options = stmt.list::<DefElem>(|stmt| &stmt.options);
            let option = options.find(|it| it.text(|it| &it.defname) == Some(c"template"))?;
            databases::oid(&names::option_value(option)?)?
        }
        _ => return None,
    };
    // Other users cannot run it, and must not stop deletion by trying.
    if !roles::owns(
        pg_sys::DatabaseRelationId,
        oid.into(),
        roles::current_user(),
    ) {
        return None;
    }
    // PostgreSQL refuses the others for the current database.
    let copies = node.type_ == NodeTag::T_CreatedbStmt;
    (copies || oid != background::my_database().to_u32()).then_some(oid)
}

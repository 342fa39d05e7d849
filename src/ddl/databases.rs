//! Statements for which nobody else may be connected to a database.

use crate::pg::{background, databases, lists, roles};
use pgrx::pg_sys::{self, DefElem, NodeTag, ObjectType};
use std::ffi::CStr;

/// The database that the statement wants for itself, if it is one of those.
///
/// # Safety
/// `node` is a utility statement of the parser, or null.
pub(crate) unsafe fn wanted_database(node: *mut pg_sys::Node) -> Option<u32> {
    // SAFETY: the node's tag tells its type.
    let name = unsafe {
        match crate::pg::nodes::tag(node)? {
            NodeTag::T_DropdbStmt => (*node.cast::<pg_sys::DropdbStmt>()).dbname,
            NodeTag::T_AlterDatabaseStmt => {
                let stmt = node.cast::<pg_sys::AlterDatabaseStmt>();
                let wants = lists::iter::<DefElem>((*stmt).options)
                    .map(|option| CStr::from_ptr((*option).defname))
                    .any(|name| {
                        [c"tablespace", c"allow_connections", c"is_template"].contains(&name)
                    });
                if !wants {
                    return None;
                }
                (*stmt).dbname
            }
            NodeTag::T_RenameStmt => {
                let stmt = node.cast::<pg_sys::RenameStmt>();
                if (*stmt).renameType != ObjectType::OBJECT_DATABASE {
                    return None;
                }
                (*stmt).subname
            }
            NodeTag::T_CreatedbStmt => template((*node.cast::<pg_sys::CreatedbStmt>()).options)?,
            _ => return None,
        }
    };
    if name.is_null() {
        return None;
    }
    // SAFETY: a C string of the statement.
    let oid = databases::oid(unsafe { CStr::from_ptr(name) })?;
    // Others cannot do it anyway, and must not hold deletion off by trying.
    if !roles::owns_database(oid, roles::current_user()) {
        return None;
    }
    // PostgreSQL refuses to do it to one's own.
    (oid != background::my_database().to_u32()).then_some(oid)
}

/// The name that CREATE DATABASE gives as its template.
unsafe fn template(options: *mut pg_sys::List) -> Option<*mut core::ffi::c_char> {
    // SAFETY: a list of DefElems, whose argument defGetString reads.
    unsafe {
        lists::iter::<DefElem>(options)
            .find(|option| CStr::from_ptr((**option).defname) == c"template")
            .filter(|option| !(**option).arg.is_null())
            .map(|option| pg_sys::defGetString(option))
    }
}

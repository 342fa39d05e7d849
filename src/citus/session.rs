//! Whether it is Citus that speaks in this session: by a connection of its own, or by one of its
//! functions that is running.

use super::catalogs;
use crate::pg::catalog::names;
use crate::pg::session;
use crate::pg::session::scoped::{Scope, Scoped};
use pgrx::pg_sys;
use std::ffi::CStr;

/// What connections between nodes are called (`application_name`). A user can call one so, too:
/// nothing that they might not do anyway follows from it.
const CONNECTIONS: [&[u8]; 2] = [b"citus_internal gpid=", b"citus_rebalancer gpid="];

/// Functions that copy a shard to another place: they read it.
const COPYING: [&CStr; 2] = [c"worker_copy_table_to_node", c"worker_split_copy"];

/// Functions that make a table of Citus of a table, or a table of that, and bring its rows there.
const CONVERTING: [&CStr; 11] = [
    c"create_distributed_table",
    c"create_distributed_table_concurrently",
    c"create_reference_table",
    c"citus_add_local_table_to_metadata",
    c"create_citus_local_table",
    c"undistribute_table",
    c"alter_distributed_table",
    c"alter_table_set_access_method",
    c"citus_schema_distribute",
    c"citus_schema_undistribute",
    c"remove_local_tables_from_metadata",
];

/// The function that gives a shard what its table has.
const MAKING: &CStr = c"worker_apply_shard_ddl_command";

/// What a function of Citus is doing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    /// A shard goes to another place as it is on disk: all its rows are read.
    Copying,
    /// Rows go into another kind of table: they keep their time.
    Converting,
    /// A shard gets what its table has; it may be a copy that Citus has only begun to make.
    Making,
}

/// The outermost such function that is running; there is no other.
static RUNNING: Scoped<Doing> = Scoped::new();

/// Whether the session is a connection of Citus between nodes.
pub(crate) fn is_of_citus() -> bool {
    catalogs::is_present()
        && session::application_name()
            .is_some_and(|name| CONNECTIONS.iter().any(|of| name.to_bytes().starts_with(of)))
}

/// Whether a function of Citus is running that does this.
#[inline]
pub(crate) fn is_doing(what: Doing) -> bool {
    RUNNING.current() == Some(what)
}

/// Called before such a function is called, [`leave`] after it. Returns what begins with it; `None` within
/// another.
pub(crate) fn enter(function: pg_sys::Oid) -> Option<(Doing, Scope)> {
    if !RUNNING.is_empty() {
        return None;
    }
    let doing = doing(function)?;
    Some((doing, RUNNING.enter(doing)))
}

/// What the function does, if it is one of these.
pub(crate) fn doing(function: pg_sys::Oid) -> Option<Doing> {
    if function.to_u32() < pg_sys::FirstNormalObjectId || !catalogs::is_present() {
        return None;
    }
    let name = names::built_in(function)?;
    let is = |of: &&CStr| **of == *name;
    if COPYING.iter().any(is) {
        Some(Doing::Copying)
    } else if *name == *MAKING {
        Some(Doing::Making)
    } else {
        CONVERTING.iter().any(is).then_some(Doing::Converting)
    }
}

/// What is special about a function that converts tables.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Conversion {
    /// It takes a schema, not a table.
    pub(crate) of_schema: bool,
    /// It gives the table another access method.
    pub(crate) changes_method: bool,
    /// It converts tables that are colocated with the given one, too, if its arguments say so.
    pub(crate) of_colocated: bool,
    /// It does so in transactions of its own.
    pub(crate) commits_within: bool,
}

/// What is special about the function; nothing, if it is none of those that convert.
pub(crate) fn conversion(function: pg_sys::Oid) -> Conversion {
    let Some(name) = names::built_in(function) else {
        return Conversion::default();
    };
    let is = |of: &CStr| *of == *name;
    Conversion {
        of_schema: is(c"citus_schema_distribute") || is(c"citus_schema_undistribute"),
        changes_method: is(c"alter_table_set_access_method"),
        of_colocated: is(c"alter_distributed_table"),
        commits_within: is(c"create_distributed_table_concurrently"),
    }
}

/// Ends what [`enter`] began. Calls no function of PostgreSQL.
pub(crate) fn leave(scope: Scope) {
    RUNNING.leave(scope);
}

//! A query that is planned for somebody else than the owner of its table, and must run no code of that owner's.
//!
//! What planning runs is looked for in the catalogs before (`pg/catalog/code.rs`). But no lock keeps the catalogs as they are
//! until the planner reads them: an index, statistics or a partition may come meanwhile, while the planner
//! waits for a lock on another index, say. So PostgreSQL is also stopped where it looks such a function up
//! (`docs/decisions/0096-owners-code-in-owners-sessions.md`).

use crate::error::Error;
use crate::pg::catalog::{self, functions_used, names};
use crate::pg::session::scoped::{Scope, Scoped};
use pgrx::pg_sys::Oid;
use pgrx::prelude::*;

/// The tables whose queries are guarded.
static GUARDED: Scoped<Oid> = Scoped::new();

/// From now on only functions that superusers have made in C run, until [`leave`], or the end of the (sub)transaction.
pub(crate) fn enter(relid: Oid) -> Scope {
    GUARDED.enter(relid)
}

/// Ends it.
pub(crate) fn leave(scope: Scope) {
    GUARDED.leave(scope);
}

/// Whether a query is planned so.
#[inline]
pub(crate) fn is_on() -> bool {
    !GUARDED.is_empty()
}

/// Before PostgreSQL looks a function up to call it: raises 42501 if a user may have made it.
#[pg_guard]
pub(crate) extern "C-unwind" fn check(function: Oid) {
    let Some(relid) = GUARDED.current() else {
        return;
    };
    if functions_used::is_trusted(function) {
        return;
    }
    let (table, function) = (catalog::qualified_name(relid), names::of_function(function));
    Error::denied(format!(
        "function {function} would run while a query on table {table} is planned"
    ))
    .detail("It belongs to a type of a constant in the query, or has come to an index, a constraint or statistics of the table while the query was prepared. Code of another owner does not run here.")
    .hint("Try again, or have the owner of the table run the statement.")
    .raise()
}

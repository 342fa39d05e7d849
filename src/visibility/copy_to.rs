//! `COPY table TO` does not pass through the planner: it becomes
//! `COPY (SELECT its columns FROM ONLY table) TO`, as PostgreSQL itself does for
//! tables with row-level security.

use crate::citus::{self, Doing};
use crate::error::Error;
use crate::pg::abi::{encoding, lists};
use crate::pg::catalog::{self, code, replication, roles};
use crate::pg::exec::guarded_planning;
use crate::pg::plan::planner_input::{QueryTree, RangeTableEntry};
use crate::pg::session::gate::{self, Bounded};
use crate::pg::session::scoped::{Scope, Scoped};
use crate::settings;
use crate::store::{cache, extension};
use pgrx::pg_sys::{self, CopyStmt, PlannedStmt};
use pgrx::prelude::*;
use std::ffi::{CStr, c_char};

/// The statement to run in place of the given one, and what [`end`] needs; `None` if nothing must be hidden.
///
/// # Safety
/// `pstmt` holds a CopyStmt of the parser; it is not changed.
pub(crate) unsafe fn hide_expired(
    pstmt: *mut PlannedStmt,
    text: *const c_char,
) -> Option<(*mut PlannedStmt, Scope)> {
    // C36: a query of that text sees every row (`planned_statement.rs`), and so does a table's COPY.
    if replication::is_copied_by(text) {
        return None;
    }
    // SAFETY: as required of the caller; a copy is changed, never the original.
    unsafe {
        let stmt = (*pstmt).utilityStmt.cast::<CopyStmt>();
        let (relid, query) = replacement(stmt)?;
        let scope = COPIED.enter(CopiedTable {
            relid,
            text,
            is_planned: false,
        });
        let query = encoding::query(&query);
        let copy = pg_sys::copyObjectImpl(pstmt.cast()).cast::<PlannedStmt>();
        let stmt = (*copy).utilityStmt.cast::<CopyStmt>();
        (*stmt).relation = core::ptr::null_mut();
        (*stmt).attlist = core::ptr::null_mut();
        // The parse tree copies what it needs of the text.
        let trees = pg_sys::raw_parser(query.as_ptr(), pg_sys::RawParseMode::RAW_PARSE_DEFAULT);
        (*stmt).query = (*pg_sys::list_nth(trees, 0).cast::<pg_sys::RawStmt>()).stmt;
        Some((copy, scope))
    }
}

/// A table whose COPY runs.
#[derive(Clone, Copy)]
struct CopiedTable {
    relid: pg_sys::Oid,
    /// The statement's text, which is that of its query, too.
    text: *const c_char,
    is_planned: bool,
}

static COPIED: Scoped<CopiedTable> = Scoped::new();

/// Whether such a COPY runs.
#[inline]
pub(crate) fn is_any() -> bool {
    !COPIED.is_empty()
}

/// When a query has been analyzed, before it is rewritten: if it is that of the COPY, it reads the table, or 55000. It names the table, and a
/// schema can be renamed at any time: COPY itself runs no functions of a view that has the name then.
#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
pub(crate) extern "C-unwind" fn check_analyzed(text: *const c_char, query: QueryTree<'_>) {
    let copied = COPIED.current();
    let Some(copied) = copied.filter(|it| !it.is_planned && it.text == text) else {
        return;
    };
    let table = query.entry(1).and_then(RangeTableEntry::table);
    if table != Some(copied.relid) {
        let table = catalog::qualified_name(copied.relid);
        Error::not_ready(format!(
            "another table has taken the name of {table} meanwhile"
        ))
        .hint("Try again.")
        .raise();
    }
}

/// What ends with the planning of a COPY's query.
#[derive(Clone, Copy)]
pub(crate) struct CopyPlanning {
    lent: Option<Bounded>,
    guarded: Option<Scope>,
}

/// Before a query is planned. COPY of a table plans nothing, so the query in its place must run no code of the table's
/// owner in another's session, such as functions in indexes: it is refused then.
#[inline]
pub(crate) fn before_planning(query: QueryTree<'_>) -> Option<CopyPlanning> {
    let copied = COPIED.current()?;
    // Another library's hook may plan a query of its own before.
    let is_of_copy = || {
        query
            .first_tables()
            .is_some_and(|(first, _)| first == copied.relid)
    };
    if copied.is_planned || !is_of_copy() {
        return None;
    }
    COPIED.change(|it| it.is_planned = true);
    plan_as_owner(copied.relid)
}

#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
extern "C-unwind" fn plan_as_owner(relid: pg_sys::Oid) -> Option<CopyPlanning> {
    let owner = catalog::class(relid)?.owner;
    let is_anothers = ![gate::session_user(), roles::current_user()].contains(&owner)
        && !roles::is_superuser(owner);
    if is_anothers && let Some(what) = code::at_planning(relid) {
        refuse(relid, owner, &what);
    }
    let may_become = !gate::is_untrusted(owner);
    Some(CopyPlanning {
        lent: may_become.then(|| gate::lend(owner)).flatten(),
        guarded: is_anothers.then(|| guarded_planning::enter(relid)),
    })
}

fn refuse(relid: pg_sys::Oid, owner: pg_sys::Oid, what: &str) -> ! {
    let (table, owner) = (catalog::qualified_name(relid), roles::name(owner));
    Error::denied(format!("COPY would run {what} of table {table}, which belongs to {owner}"))
    .detail("To leave out expired rows, the table is read by a query, which is planned by its indexes and constraints.")
    .hint(format!(
        "If you trust {owner}, copy a query: COPY (SELECT * FROM {table}) TO …; a superuser can also SET row_security = off, to copy expired rows, too."
    ))
    .raise()
}

/// After the query has been planned.
#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
pub(crate) extern "C-unwind" fn after_planning(copied: CopyPlanning) {
    if let Some(guarded) = copied.guarded {
        guarded_planning::leave(guarded);
    }
    if let Some(lent) = copied.lent {
        lent.end();
    }
}

/// After the statement.
pub(crate) fn end(scope: Scope) {
    COPIED.leave(scope);
}

/// The query that reads what the user may see; `None` to leave the statement alone.
///
/// # Safety
/// `stmt` is a CopyStmt of the parser.
unsafe fn replacement(stmt: *mut CopyStmt) -> Option<(pg_sys::Oid, String)> {
    // SAFETY: as required of the caller. The lock is the one that COPY takes before it checks
    // privileges.
    let (relid, named) = unsafe {
        if (*stmt).is_from
            || (*stmt).relation.is_null()
            || settings::show_expired()
            || citus::is_doing(Doing::Copying)
            || extension::is_known_to_be_absent()
        {
            return None;
        }
        let lock = pg_sys::AccessShareLock.cast_signed();
        let (missing_ok, none) = (pg_sys::RVROption::RVR_MISSING_OK, core::ptr::null_mut());
        let relid =
            pg_sys::RangeVarGetRelidExtended((*stmt).relation, lock, missing_ok, None, none);
        let named = (*stmt).attlist;
        (relid, (!named.is_null()).then(|| lists::names(named)))
    };
    cache::policy(relid).filter(|policy| policy.hides())?;
    // From 19 on, a partitioned table can be copied as a whole.
    let only = match catalog::class(relid)?.relkind {
        pg_sys::RELKIND_RELATION => "ONLY ",
        pg_sys::RELKIND_PARTITIONED_TABLE if cfg!(since19) => "",
        _ => return None,
    };
    if roles::reads_physically(relid) {
        return None;
    }
    let columns = columns(relid, named)?.join(", ");
    let table = catalog::qualified_name(relid);
    Some((relid, format!("SELECT {columns} FROM {only}{table}")))
}

/// The columns that COPY would write, in its order: the named ones, or all that are neither
/// dropped nor generated. `None` if a name is unknown or there twice, which COPY reports better.
fn columns<'a>(
    relid: pg_sys::Oid,
    named: Option<impl Iterator<Item = &'a CStr>>,
) -> Option<Vec<String>> {
    let Some(named) = named else {
        let all = catalog::copied_columns(relid);
        return Some(all.map(|name| catalog::quote_identifier(&name)).collect());
    };
    let mut columns = Vec::new();
    for name in named {
        let name = encoding::from_server(name);
        let column = catalog::attribute(relid, &name)?;
        let quoted = catalog::quote_identifier(&name);
        if column.generated || columns.contains(&quoted) {
            return None;
        }
        columns.push(quoted);
    }
    Some(columns)
}

//! Whose code a deletion reaches by foreign keys.
//!
//! A deletion belongs to the owner of the table that it begins with ([`underway::Root`]). Code of
//! other owners, superusers excepted, does not run in it: neither as itself, since the session is
//! another user's and goes on, nor as another role. The question is asked where a foreign key
//! reaches a table, by PostgreSQL's own query for one referenced row, so that it is about the rows that
//! are there: a table in which no row refers to the deleted one stops nothing.

use super::removals::KnownQuery;
use super::underway;
use crate::error::Error;
use crate::pg::abi::externs;
use crate::pg::abi::variable::ByOid;
use crate::pg::catalog::code::{self, Change, Code};
use crate::pg::catalog::{self, cascade, invalidation, roles};
use crate::pg::exec::kept_query::{KeptQuery, Parameters};
use crate::pg::plan::planner_input::QueryTree;
use crate::pg::session::locks;
use crate::visibility::planned_statement;
use crate::visibility::referential::{self, Action, Enforced};
use pgrx::pg_sys;
use pgrx::pg_sys::Oid;
use pgrx::prelude::*;
use std::ffi::CStr;
use std::rc::Rc;

/// A foreign key's query on its referencing table, within a deletion.
pub(super) struct Reach {
    relid: Oid,
    referenced: Oid,
    /// Whose rows are deleted.
    pub(super) root: Oid,
    /// Another owner, who is no superuser.
    stranger: Option<Oid>,
    /// The extension deletes, and no user.
    is_own: bool,
}

impl Reach {
    pub(super) fn of(relid: Oid, enforced: &Enforced) -> Self {
        let root = underway::root();
        let owner = root
            .map(|root| root.owner)
            .or_else(|| catalog::owner(enforced.referenced))
            .unwrap_or(pg_sys::InvalidOid);
        Self {
            relid,
            referenced: enforced.referenced,
            root: owner,
            stranger: stranger_among(relid, owner),
            is_own: root.is_some(),
        }
    }

    /// Whether the table belongs to another owner.
    pub(super) fn is_stranger(&self) -> bool {
        self.stranger.is_some()
    }

    /// Before PostgreSQL's query runs for a row that the extension has deleted: raises 42501 if it
    /// would set off code of another owner. True if such code would run although the query meets no
    /// row (triggers for statements): then the query is left out.
    pub(super) fn skips(&self, known: &KnownQuery, parameters: &Parameters) -> bool {
        if !self.is_own || self.stranger.is_none() {
            return false;
        }
        let change = match known.enforced.action {
            Action::Check => return false,
            Action::Delete => Change::Deletion,
            Action::Update => Change::Update(&known.enforced.referencing),
        };
        let code = known.code.get_or_init(|| {
            let mut code = code::of(self.relid, change);
            if matches!(change, Change::Update(_)) && catalog::is_partitioned(self.relid) {
                // A row may move to a partition that comes while the statement waits.
                let triggers = || Some("triggers of partitions".to_owned());
                code.rows = code.rows.or_else(triggers);
            }
            code
        });
        if code.rows.is_none() && code.statements.is_none() {
            return false;
        }
        if refers_any(&known.enforced, self.relid, parameters) {
            self.heed(self.relid, code);
        }
        code.statements.is_some()
    }

    /// Before rows of this table, the referencing one or a partition of it, are deleted or changed:
    /// raises 42501 if that runs code of another owner.
    pub(super) fn heed(&self, relid: Oid, code: &Code) {
        let Some(stranger) = self.stranger else {
            return;
        };
        let all = [&code.rows, &code.statements, &code.planning];
        if let Some(what) = all.into_iter().flatten().next() {
            refuse(relid, stranger, self.root, Some(self.referenced), what);
        }
    }
}

fn is_stranger(role: Oid, root: Oid) -> bool {
    role != root && !roles::is_superuser(role)
}

/// The owners of tables, their partitions, and the tables of which they are partitions, until anything is invalidated.
static OWNERS: ByOid<Rc<[Oid]>> = ByOid::empty();

/// An owner of the table, of one of its partitions, or of a table of which it is a partition, who is another than this one and no superuser:
/// triggers and indexes that such a role makes are made on the table, too.
fn stranger_among(relid: Oid, root: Oid) -> Option<Oid> {
    let look_up = || {
        let tables = code::places(relid).into_iter();
        let mut owners: Vec<Oid> = tables.filter_map(catalog::owner).collect();
        owners.sort_unstable_by_key(|owner| owner.to_u32());
        owners.dedup();
        owners.into()
    };
    invalidation::cached(&OWNERS, relid, || true, look_up)
        .iter()
        .copied()
        .find(|&owner| is_stranger(owner, root))
}

/// Whether deletions from these tables set off code, until anything is invalidated.
static SETS_OFF_CODE: ByOid<bool> = ByOid::empty();

/// Registers for invalidations; once, at load. Another relation may lead to the one that is invalidated.
pub(crate) fn init() {
    invalidation::listen(|_| {
        invalidation::forget(&SETS_OFF_CODE, pg_sys::InvalidOid);
        invalidation::forget(&OWNERS, pg_sys::InvalidOid);
    });
}

/// Whether a deletion from this table can set off code in the tables that foreign keys reach: of its owner, or a superuser, as others' code is
/// refused ([`Reach::heed`]).
pub(super) fn sets_off_code(relid: Oid) -> bool {
    let root = catalog::owner(relid).unwrap_or(pg_sys::InvalidOid);
    let sets_off = |table| {
        let columns: Vec<i16> = (1..=catalog::column_count(table)).collect();
        !catalog::owner(table).is_none_or(|owner| is_stranger(owner, root))
            && (code::of(table, Change::Deletion).is_any()
                || code::of(table, Change::Update(&columns)).is_any())
    };
    // Where there are many, not all are looked up each time that something changes: they may.
    let look_up = || {
        let mut reached = cascade::reached_from(relid).zip(1..);
        reached.any(|(table, count)| count > cascade::MANY || sets_off(table))
    };
    invalidation::cached(&SETS_OFF_CODE, relid, || true, look_up)
}

/// Before a row of the table is deleted within a deletion of the extension's, which fires triggers or writes to an archive:
/// raises 42501 if the table belongs to another owner than the one whose rows are deleted.
pub(super) fn refuse_strangers_triggers(relid: Oid, owner: Oid) {
    if let Some(root) = underway::root().filter(|root| is_stranger(owner, root.owner)) {
        refuse(relid, owner, root.owner, None, "triggers or the archive");
    }
}

/// Whether a query that has been analyzed is to be checked: a foreign key's query, within a deletion of the extension's or in a check that
/// follows one.
#[inline]
pub(crate) fn checks_analyzed() -> bool {
    externs::InNoForceRLSOperation() && (underway::is_underway() || underway::is_any_checked())
}

/// After the analysis of a query, if [`checks_analyzed`]. PostgreSQL's own queries name the referencing table or the referenced one, and its
/// columns, operators and types. If these names lead to anything else by now than to one of the foreign keys of a table of the current
/// user's, 55000: to a view, for example, to an operator of another role's, or to a table whose column has a cast of its owner's or that
/// others inherit from, and whose code would run.
///
/// # Safety
/// An analyzed query, before it is rewritten.
#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
pub(crate) unsafe extern "C-unwind" fn check_analyzed(text: &CStr, query: QueryTree<'_>) {
    let text = text.to_bytes();
    if !is_postgresqls(text) || referential::is_of_foreign_key(query, text) {
        return;
    }
    let table = query.first_tables().map(|(table, _)| table);
    let name = table.map_or_else(|| "the name".to_owned(), catalog::qualified_name);
    Error::not_ready(format!("another table has become {name} meanwhile"))
        .detail("The query of a foreign key would use this table, which has no such foreign key or another owner, or an operator of that name.")
        .hint("Try again.")
        .raise();
}

/// Whether it looks like PostgreSQL's own query on the referencing table, where the parameter is the first operand, or on the referenced one.
/// A statement of a trigger has another text, unless it is written like this.
fn is_postgresqls(text: &[u8]) -> bool {
    let begins = [&b"SELECT 1 FROM "[..], b"DELETE FROM ", b"UPDATE "];
    let has = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
    begins.iter().any(|begin| text.starts_with(begin))
        && has(b" OPERATOR(")
        && (has(b" WHERE $") || has(b" FOR KEY SHARE OF x"))
}

/// Before a query runs that writes to the table, within a foreign key's, and is none of PostgreSQL's own that is known: within a deletion
/// of the extension's it sets off no code of another owner. Raises 42501.
pub(super) fn refuse_unknown(relid: Oid) {
    let Some(root) = underway::root() else { return };
    let Some(stranger) = stranger_among(relid, root.owner) else {
        return;
    };
    let columns: Vec<i16> = (1..=catalog::column_count(relid)).collect();
    for change in [Change::Deletion, Change::Update(&columns)] {
        let code = code::of(relid, change);
        let all = [code.rows, code.statements, code.planning];
        if let Some(what) = all.into_iter().flatten().next() {
            refuse(relid, stranger, root.owner, None, &what);
        }
    }
}

/// Before a query is planned: within a deletion of the extension's, or as a check that follows one, PostgreSQL's own query on the
/// table of another owner must run none of their code while it is planned. Raises 42501. Returns such a table.
pub(crate) fn before_planning(query: QueryTree<'_>) -> Option<Oid> {
    if !externs::InNoForceRLSOperation() {
        return None;
    }
    let user = roles::current_user();
    let (relid, _) = query.first_tables()?;
    let root = underway::root().or_else(|| underway::root_of_check(relid))?;
    // PostgreSQL runs its queries as the table's owner. A partition may have another.
    if catalog::class(relid).is_none_or(|class| class.owner != user) {
        return None;
    }
    let stranger = stranger_among(relid, root.owner)?;
    let is_looked_at = root
        .looked_at
        .is_some_and(|table| table == relid || catalog::all_inheritors(table).contains(&relid));
    if is_looked_at {
        return None;
    }
    if catalog::is_partitioned(relid) {
        // So that no index comes to one of them while the planner waits for the lock on another.
        for partition in code::with_partitions(relid) {
            locks::relation(partition, pg_sys::RowExclusiveLock);
        }
    }
    if let Some(what) = code::at_planning(relid) {
        refuse(relid, stranger, root.owner, None, &what);
    }
    Some(relid)
}

fn refuse(relid: Oid, stranger: Oid, root: Oid, referenced: Option<Oid>, what: &str) -> ! {
    let is_strangers = |table: &Oid| catalog::owner(*table) == Some(stranger);
    let place = code::places(relid).into_iter().find(is_strangers);
    let (table, place, stranger, root) = (
        catalog::qualified_name(relid),
        catalog::qualified_name(place.unwrap_or(relid)),
        roles::name(stranger),
        roles::name(root),
    );
    let rows = match referenced {
        Some(referenced) => format!(
            "Rows of {table} refer to an expired row, or to a deleted one, of table {}.",
            catalog::qualified_name(referenced)
        ),
        None => {
            format!("A foreign key of {table} refers to a table whose expired rows are deleted.")
        }
    };
    Error::denied(format!(
        "deletion would run {what} of table {place}, which belongs to {stranger}"
    ))
    .detail(format!(
        "{rows} The deleted rows belong to {root}, and code of another owner does not run where they are deleted."
    ))
    .hint(format!(
        "Drop the trigger, rule or expression or the foreign key, have {stranger} delete these rows, or give both tables the same owner."
    ))
    .raise()
}

/// Whether a row is there, expired or not, that refers to the one.
fn refers_any(enforced: &Enforced, relid: Oid, parameters: &Parameters) -> bool {
    finds_any(enforced.search(None, "true"), relid, parameters)
}

/// Whether the query returns a row of this table.
pub(super) fn finds_any(search: Vec<u8>, relid: Oid, parameters: &Parameters) -> bool {
    let search = KeptQuery::of(search, parameters, [relid; 2]);
    planned_statement::removing(relid, search.text(), || search.run(parameters) > 0)
}

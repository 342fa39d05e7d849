//! What the planner knows of the statement that it plans.

use super::referential::{self, Circumstances, Referential};
use crate::pg::abi::externs;
use crate::pg::catalog::replication;
use crate::pg::plan::planner_input::QueryTree;
use crate::pg::session::scoped::{Scope, Scoped};
use pgrx::pg_sys;
use std::ffi::{CStr, c_char};

/// The statement being planned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlannedStatement {
    /// Its part in referential integrity.
    pub(super) referential: Referential,
    /// The extension's own query, if it is one.
    own: Option<OwnQuery>,
    /// Whether the client of a replication connection copies its rows (C36): a subscriber, whose
    /// initial copy is physical (`docs/decisions/0062-physical-initial-copy.md`).
    pub(super) is_copied: bool,
    /// Whether its plan is right for the current role only.
    for_current_role: bool,
}

impl PlannedStatement {
    const ORDINARY: Self = Self {
        referential: Referential::No,
        own: None,
        is_copied: false,
        for_current_role: false,
    };

    /// Whether PostgreSQL wrote it to keep referential integrity of the table.
    pub(crate) fn keeps_integrity_of(&self, relid: pg_sys::Oid) -> bool {
        self.referential.sees_every_row_of(relid)
    }

    /// Whether it sees this table's expired rows, as a query of the extension.
    pub(super) fn is_own_query_on(&self, relid: pg_sys::Oid) -> bool {
        self.own.is_some_and(|own| own.relid == relid)
    }

    /// Whether it removes rows that refer to one which goes.
    pub(super) fn removes_referring(&self) -> bool {
        self.own.is_some_and(|own| own.removes_referring)
    }

    /// Whether it moves rows elsewhere, which keep their `_ts`.
    pub(crate) fn archives(&self) -> bool {
        self.own.is_some_and(|own| own.archives)
    }
}

/// The statements that are being planned. Planning one may run functions, whose statements are
/// planned meanwhile.
static PLANNED: Scoped<PlannedStatement> = Scoped::new();

/// A query of the extension's own that is run next. A function that is run to plan it may use another.
#[derive(Debug, Clone, Copy)]
struct OwnQuery {
    /// It sees every row of this table.
    relid: pg_sys::Oid,
    /// The address of its text, once known.
    text: *const c_char,
    /// It removes rows that refer to one that goes.
    removes_referring: bool,
    /// It inserts rows of the table elsewhere.
    archives: bool,
}

static OWN_QUERY: Scoped<OwnQuery> = Scoped::new();

impl OwnQuery {
    fn on(relid: pg_sys::Oid) -> Self {
        Self {
            relid,
            text: core::ptr::null(),
            removes_referring: false,
            archives: false,
        }
    }
}

/// The statement being planned.
pub(crate) fn current() -> PlannedStatement {
    PLANNED.current().unwrap_or(PlannedStatement::ORDINARY)
}

/// Begins the planning of a statement; [`leave`] ends it.
///
/// # Safety
/// `text` is that of the query, a C string or null.
pub(crate) unsafe fn enter(query: QueryTree<'_>, text: *const c_char) -> Scope {
    let (enforcing, ddl) = (
        externs::InNoForceRLSOperation(),
        referential::CONSTRAINT_DDL.current(),
    );
    let referential = if (enforcing || ddl.is_some()) && !text.is_null() {
        // SAFETY: as required of the caller.
        let text = unsafe { CStr::from_ptr(text) }.to_bytes();
        referential::classify(query, text, Circumstances { enforcing, ddl })
    } else {
        Referential::No
    };
    enter_as(referential, query, text)
}

/// Whether a statement that is planned now may be one of PostgreSQL's own, for a foreign key.
pub(crate) fn may_be_referential() -> bool {
    externs::InNoForceRLSOperation() || !referential::CONSTRAINT_DDL.is_empty()
}

/// As [`enter`], where [`may_be_referential`] says no. Calls no function of PostgreSQL that can
/// fail.
pub(crate) fn enter_ordinary(query: QueryTree<'_>, text: *const c_char) -> Scope {
    enter_as(Referential::No, query, text)
}

fn enter_as(referential: Referential, query: QueryTree<'_>, text: *const c_char) -> Scope {
    let statement = PlannedStatement {
        referential,
        own: own_query(text),
        is_copied: replication::is_copied_by(text) && query.only_reads(),
        // A user who runs the plan later is no foreign key.
        for_current_role: referential != Referential::No,
    };
    PLANNED.enter(statement)
}

/// The extension's own query, if this is its text.
///
/// Actions of the table's rules are planned with the same text, perhaps instead of the query;
/// their OLD is its rows. Functions that run during the planning, and triggers, have other
/// texts.
fn own_query(query_string: *const c_char) -> Option<OwnQuery> {
    OWN_QUERY.change(|own| {
        let is_it = own.text.is_null() || own.text == query_string;
        is_it.then(|| {
            own.text = query_string;
            *own
        })
    })?
}

/// Notes that a cached plan of the statement is right for the current role only.
pub(crate) fn depends_on_role() {
    PLANNED.change(|last| last.for_current_role = true);
}

/// Ends the planning of a statement; true if its plan is for the current role only.
pub(crate) fn leave(scope: Scope) -> bool {
    PLANNED.leave(scope).is_some_and(|own| own.for_current_role)
}

/// Runs `work`, whose first statement is a query of the extension that sees every row of the
/// table. Statements of triggers and functions inside it are ordinary ones.
pub(crate) fn with_expired_rows_of<T>(relid: pg_sys::Oid, work: impl FnOnce() -> T) -> T {
    OWN_QUERY.during(OwnQuery::on(relid), work)
}

/// As [`with_expired_rows_of`]; the query inserts rows of the table elsewhere, with the `_ts` that they
/// have.
pub(crate) fn archiving<T>(relid: pg_sys::Oid, work: impl FnOnce() -> T) -> T {
    let own = OwnQuery {
        archives: true,
        ..OwnQuery::on(relid)
    };
    OWN_QUERY.during(own, work)
}

/// As [`with_expired_rows_of`]; the query, which removes referring rows, is the one with this text, at this
/// address. A kept plan may need no planning now, so the text is given: it is not that of the first
/// statement that is planned.
pub(crate) fn removing<T>(relid: pg_sys::Oid, text: *const c_char, work: impl FnOnce() -> T) -> T {
    let own = OwnQuery {
        relid,
        text,
        removes_referring: true,
        archives: true,
    };
    OWN_QUERY.during(own, work)
}

//! What the planner knows of the statement that it plans.

use super::constraint_ddl;
use super::referential::{self, Circumstances, Referential};
use crate::pg::planner_input::Query;
use crate::pg::variable::Variable;
use crate::pg::{externs, replication, xact};
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char};

/// The statement being planned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Statement {
    /// Its part in referential integrity.
    pub(super) referential: Referential,
    /// The table whose expired rows it sees, as a query of the extension.
    pub(super) own_query_on: Option<pg_sys::Oid>,
    /// Whether that query belongs to a session's transaction, not to a worker's.
    pub(super) is_of_session: bool,
    /// Whether that query removes rows that refer to one which goes.
    pub(super) removes_referring: bool,
    /// Whether that query moves rows elsewhere, which keep their `_ts`.
    pub(crate) archives: bool,
    /// Whether the client of a replication connection copies its rows (C36): a subscriber, whose
    /// initial copy is physical (`docs/decisions/0062-physical-initial-copy.md`).
    pub(super) is_copied: bool,
    /// Whether its plan is right for the current role only.
    for_current_role: bool,
}

impl Statement {
    const ORDINARY: Self = Self {
        referential: Referential::No,
        own_query_on: None,
        is_of_session: false,
        removes_referring: false,
        archives: false,
        is_copied: false,
        for_current_role: false,
    };

    /// Whether PostgreSQL wrote it to keep referential integrity of the table.
    pub(crate) fn keeps_integrity_of(&self, relid: pg_sys::Oid) -> bool {
        self.referential.sees_every_row_of(relid)
    }
}

/// The statements that are being planned, innermost last, with the transaction nesting level
/// of each. Planning one may run functions, whose statements are planned meanwhile.
static PLANNED: Variable<RefCell<Vec<(Statement, i32)>>> = Variable::new(RefCell::new(Vec::new()));
/// Set by [`with_expired_rows_of`]: the table and, once known, the address of the query's
/// text.
static OWN_QUERY: Variable<Cell<Option<(pg_sys::Oid, *const c_char)>>> =
    Variable::new(Cell::new(None));
/// Set by [`archiving`].
static ARCHIVING: Variable<Cell<bool>> = Variable::new(Cell::new(false));
/// Set by [`in_session`].
static OF_SESSION: Variable<Cell<bool>> = Variable::new(Cell::new(false));

/// Set by [`begin_removal`]: what was set before, and the transaction nesting level.
static REMOVAL: Variable<Cell<Option<Removal>>> = Variable::new(Cell::new(None));

/// A query that removes rows which refer to one that goes; [`end_removal`] ends it. `Copy`, for
/// unguarded code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Removal {
    own_query: Option<(pg_sys::Oid, *const c_char)>,
    level: i32,
}

/// Runs as [`with_expired_rows_of`] until [`end_removal`] the query with this text, at this
/// address; after an error [`at_abort`] ends it. A kept plan may need no planning now, so the
/// text is given: it is not that of the first statement that is planned.
pub(crate) fn begin_removal(relid: pg_sys::Oid, text: *const c_char) -> (Removal, Option<Removal>) {
    let own = Removal {
        own_query: OWN_QUERY.replace(Some((relid, text))),
        level: xact::nest_level(),
    };
    (own, REMOVAL.replace(Some(own)))
}

/// Ends it.
pub(crate) fn end_removal((own, outer): (Removal, Option<Removal>)) {
    OWN_QUERY.set(own.own_query);
    REMOVAL.set(outer);
}

/// The statement being planned.
pub(crate) fn current() -> Statement {
    PLANNED.with_borrow(|all| all.last().map_or(Statement::ORDINARY, |&(last, _)| last))
}

/// Begins the planning of a statement; returns the argument for [`leave`]. After an error
/// [`at_abort`] ends it.
///
/// # Safety
/// `text` is that of the query, a C string or null.
pub(crate) unsafe fn enter(query: Query<'_>, text: *const c_char) -> usize {
    let (enforcing, ddl) = (
        externs::InNoForceRLSOperation(),
        constraint_ddl::innermost(),
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
    externs::InNoForceRLSOperation() || constraint_ddl::innermost().is_some()
}

/// As [`enter`], where [`may_be_referential`] says no. Calls no function of PostgreSQL that can
/// fail.
pub(crate) fn enter_ordinary(query: Query<'_>, text: *const c_char) -> usize {
    enter_as(Referential::No, query, text)
}

fn enter_as(referential: Referential, query: Query<'_>, text: *const c_char) -> usize {
    let own_query_on = own_query_on(text);
    let statement = Statement {
        referential,
        own_query_on,
        archives: own_query_on.is_some() && (ARCHIVING.get() || REMOVAL.get().is_some()),
        is_of_session: OF_SESSION.get() || own_query_on.is_some() && REMOVAL.get().is_some(),
        removes_referring: own_query_on.is_some() && REMOVAL.get().is_some(),
        is_copied: replication::is_copied_by(text) && query.only_reads(),
        // A user who runs the plan later is no foreign key.
        for_current_role: referential != Referential::No,
    };
    PLANNED.with_borrow_mut(|all| {
        all.push((statement, xact::nest_level()));
        all.len() - 1
    })
}

/// Forgets statements whose planning an error has ended, in a transaction of this nesting level
/// or a deeper one.
pub(crate) fn at_abort(level: i32) {
    PLANNED.with_borrow_mut(|all| all.retain(|&(_, at)| at < level));
    if let Some(removal) = REMOVAL.get().filter(|removal| removal.level >= level) {
        OWN_QUERY.set(removal.own_query.filter(|_| level > 1));
        REMOVAL.set(None);
    }
}

/// The table of the extension's own query, if this is its text.
///
/// Actions of the table's rules are planned with the same text, perhaps instead of the query;
/// their OLD is its rows. Functions that run during the planning, and triggers, have other
/// texts.
fn own_query_on(query_string: *const c_char) -> Option<pg_sys::Oid> {
    let (relid, text) = OWN_QUERY.get()?;
    if !text.is_null() && text != query_string {
        return None;
    }
    OWN_QUERY.set(Some((relid, query_string)));
    Some(relid)
}

/// Notes that a cached plan of the statement is right for the current role only.
pub(crate) fn depends_on_role() {
    PLANNED.with_borrow_mut(|all| {
        if let Some((last, _)) = all.last_mut() {
            last.for_current_role = true;
        }
    });
}

/// Ends the planning of a statement; true if its plan is for the current role only.
pub(crate) fn leave(outer: usize) -> bool {
    PLANNED.with_borrow_mut(|all| {
        let own = all.get(outer).copied();
        all.truncate(outer);
        own.is_some_and(|(own, _)| own.for_current_role)
    })
}

/// Runs `work`, whose first statement is a query of the extension that sees every row of the
/// table. Statements of triggers and functions inside it are ordinary ones.
pub(crate) fn with_expired_rows_of<T>(relid: pg_sys::Oid, work: impl FnOnce() -> T) -> T {
    struct Restore(Option<(pg_sys::Oid, *const c_char)>);
    impl Drop for Restore {
        fn drop(&mut self) {
            OWN_QUERY.set(self.0);
        }
    }
    // Restored after an error, too. A function that is run to plan the query may use another.
    let _outer = Restore(OWN_QUERY.replace(Some((relid, core::ptr::null()))));
    work()
}

/// Runs `work` as [`with_expired_rows_of`]; its query inserts rows of the table elsewhere, with the
/// `_ts` that they have.
pub(crate) fn archiving<T>(relid: pg_sys::Oid, work: impl FnOnce() -> T) -> T {
    let _outer = Flag::set(&ARCHIVING);
    with_expired_rows_of(relid, work)
}

/// Runs `work`, whose own queries of the extension belong to a session's transaction.
pub(crate) fn in_session<T>(work: impl FnOnce() -> T) -> T {
    let _outer = Flag::set(&OF_SESSION);
    work()
}

/// Sets a flag until it is dropped, after an error, too.
struct Flag(&'static Variable<Cell<bool>>, bool);

impl Flag {
    fn set(flag: &'static Variable<Cell<bool>>) -> Self {
        Self(flag, flag.replace(true))
    }
}

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

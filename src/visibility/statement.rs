//! What the planner must know of the statement that it plans.

use super::constraint_ddl;
use super::referential::{self, Circumstances, Referential};
use crate::pg::{externs, xact};
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char};

/// The statement being planned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Statement {
    /// What it is to referential integrity.
    pub(super) referential: Referential,
    /// The table whose expired rows it must see: a query of the extension itself.
    pub(super) own_query_on: Option<pg_sys::Oid>,
    /// Whether that one is part of a session's transaction, not of a worker's.
    pub(super) is_of_session: bool,
    /// Whether its plan is right for the current role only.
    for_current_role: bool,
}

impl Statement {
    const ORDINARY: Self = Self {
        referential: Referential::No,
        own_query_on: None,
        is_of_session: false,
        for_current_role: false,
    };

    /// Whether PostgreSQL wrote it to keep referential integrity of the table: it may
    /// touch rows that are expired, which a trigger of the table has kept.
    pub(crate) fn touches_expired_rows_of(&self, relid: pg_sys::Oid) -> bool {
        self.referential.sees_every_row_of(relid) || self.referential.removes_from(relid)
    }
}

thread_local! {
    /// Those that are being planned, the innermost last, with the transaction nesting
    /// level of each: functions that are run to plan a statement plan theirs.
    static PLANNED: RefCell<Vec<(Statement, i32)>> = const { RefCell::new(Vec::new()) };
    /// Set by [`with_expired_rows_of`]: the table, and the text of the query by its
    /// address, once it is known.
    static OWN_QUERY: Cell<Option<(pg_sys::Oid, *const c_char)>> = const { Cell::new(None) };
    /// Set by [`in_session`].
    static OF_SESSION: Cell<bool> = const { Cell::new(false) };
}

/// The statement being planned.
pub(crate) fn current() -> Statement {
    PLANNED.with_borrow(|all| all.last().map_or(Statement::ORDINARY, |&(last, _)| last))
}

/// Begins the planning of a statement and returns what [`leave`] is to be told. After an
/// error, [`at_abort`] ends it.
///
/// # Safety
/// `parse` is the planner's input, `query_string` its text, a C string or null.
pub(crate) unsafe fn enter(parse: *mut pg_sys::Query, query_string: *const c_char) -> usize {
    let enforcing = externs::InNoForceRLSOperation();
    let ddl = constraint_ddl::innermost();
    let referential = if (enforcing || ddl.is_some()) && !query_string.is_null() {
        let circumstances = Circumstances { enforcing, ddl };
        // SAFETY: as required of the caller.
        unsafe {
            let query = CStr::from_ptr(query_string).to_bytes();
            referential::classify(parse, query, circumstances)
        }
    } else {
        Referential::No
    };
    let statement = Statement {
        referential,
        own_query_on: own_query_on(query_string),
        is_of_session: OF_SESSION.get(),
        // Another role that runs it is no foreign key.
        for_current_role: referential != Referential::No,
    };
    PLANNED.with_borrow_mut(|all| {
        all.push((statement, xact::nest_level()));
        all.len() - 1
    })
}

/// Ends the planning of statements that an error has ended, in a transaction of this
/// nesting level or a deeper one; those outside it go on.
pub(crate) fn at_abort(level: i32) {
    PLANNED.with_borrow_mut(|all| all.retain(|&(_, at)| at < level));
}

/// The table of the extension's own query, if this is its text.
///
/// The actions of the table's rules are planned with the same text, perhaps in place of
/// the query; their OLD is the rows that it works on. What functions run while they are
/// planned, and triggers afterwards, has texts of its own.
fn own_query_on(query_string: *const c_char) -> Option<pg_sys::Oid> {
    let (relid, text) = OWN_QUERY.get()?;
    if !text.is_null() && text != query_string {
        return None;
    }
    OWN_QUERY.set(Some((relid, query_string)));
    Some(relid)
}

/// Notes that a cached plan of the statement must be made anew for another role.
pub(crate) fn depends_on_role() {
    PLANNED.with_borrow_mut(|all| {
        if let Some((last, _)) = all.last_mut() {
            last.for_current_role = true;
        }
    });
}

/// Ends the planning of a statement; whether its plan is for the current role only.
pub(crate) fn leave(outer: usize) -> bool {
    PLANNED.with_borrow_mut(|all| {
        let own = all.get(outer).copied();
        all.truncate(outer);
        own.is_some_and(|(own, _)| own.for_current_role)
    })
}

/// Runs `work`, whose first statement is a query of the extension itself that
/// sees every row of the table. Statements of triggers and functions inside it
/// are ordinary ones.
pub(crate) fn with_expired_rows_of<T>(relid: pg_sys::Oid, work: impl FnOnce() -> T) -> T {
    struct Restore(Option<(pg_sys::Oid, *const c_char)>);
    impl Drop for Restore {
        fn drop(&mut self) {
            OWN_QUERY.set(self.0);
        }
    }
    // On an error, too. A function that is run to plan one may use another.
    let _outer = Restore(OWN_QUERY.replace(Some((relid, core::ptr::null()))));
    work()
}

/// Runs `work`, whose queries of the extension itself are part of a session's transaction.
pub(crate) fn in_session<T>(work: impl FnOnce() -> T) -> T {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            OF_SESSION.set(self.0);
        }
    }
    let _outer = Restore(OF_SESSION.replace(true));
    work()
}

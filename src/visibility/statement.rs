//! What the planner must know of the statement that it plans.

use super::referential::{self, Referential};
use crate::pg::{externs, xact};
use pgrx::pg_sys;
use std::cell::Cell;
use std::ffi::{CStr, c_char};

/// The statement being planned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Statement {
    /// What it is to referential integrity.
    pub(super) referential: Referential,
    /// The table whose expired rows it must see: a query of the extension itself.
    pub(super) own_query_on: Option<pg_sys::Oid>,
    /// Whether its plan is right for the current role only.
    for_current_role: bool,
}

impl Statement {
    const ORDINARY: Self = Self {
        referential: Referential::No,
        own_query_on: None,
        for_current_role: false,
    };

    /// Whether PostgreSQL wrote it to keep referential integrity: it may touch
    /// rows that are expired.
    pub(crate) fn touches_expired_rows(&self) -> bool {
        self.referential == Referential::Physical
    }
}

thread_local! {
    static CURRENT: Cell<Statement> = const { Cell::new(Statement::ORDINARY) };
    /// Set by [`with_expired_rows_of`]: the table, and the text of the query by its
    /// address, once it is known.
    static OWN_QUERY: Cell<Option<(pg_sys::Oid, *const c_char)>> = const { Cell::new(None) };
}

/// The statement being planned.
pub(crate) fn current() -> Statement {
    CURRENT.get()
}

/// Begins the planning of a statement and returns the one outside it, to be
/// given to [`leave`]. After an error the next `enter` sets everything anew,
/// and nothing reads [`current`] outside a planning.
///
/// # Safety
/// `query_string` is a C string or null.
pub(crate) unsafe fn enter(query_string: *const c_char) -> Statement {
    // SAFETY: reads backend-local variables.
    let enforcing = unsafe { externs::InNoForceRLSOperation() };
    let validating = xact::in_constraint_ddl();
    let referential = if (enforcing || validating) && !query_string.is_null() {
        // SAFETY: as required of the caller.
        let query = unsafe { CStr::from_ptr(query_string) }.to_string_lossy();
        referential::classify(&query, enforcing, validating)
    } else {
        Referential::No
    };
    CURRENT.replace(Statement {
        referential,
        own_query_on: own_query_on(query_string),
        for_current_role: false,
    })
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
    CURRENT.set(Statement {
        for_current_role: true,
        ..CURRENT.get()
    });
}

/// Ends the planning of a statement; whether its plan is for the current role only.
pub(crate) fn leave(outer: Statement) -> bool {
    CURRENT.replace(outer).for_current_role
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

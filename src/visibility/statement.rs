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
    /// Set by [`with_expired_rows_of`] for the next statement that is planned.
    static NEXT_OWN_QUERY: Cell<Option<pg_sys::Oid>> = const { Cell::new(None) };
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
/// `query` is what is planned, and `query_string` a C string or null.
pub(crate) unsafe fn enter(query: *mut pg_sys::Query, query_string: *const c_char) -> Statement {
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
    // The actions of the table's rules are planned before the statement itself;
    // their OLD is the rows that it works on.
    // SAFETY: as required of the caller.
    let original = unsafe { (*query).querySource == pg_sys::QuerySource::QSRC_ORIGINAL };
    CURRENT.replace(Statement {
        referential,
        own_query_on: if original {
            NEXT_OWN_QUERY.take()
        } else {
            NEXT_OWN_QUERY.get()
        },
        for_current_role: false,
    })
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
    struct Forget;
    impl Drop for Forget {
        fn drop(&mut self) {
            NEXT_OWN_QUERY.set(None);
        }
    }
    let _forget_on_error_too = Forget;
    NEXT_OWN_QUERY.set(Some(relid));
    work()
}

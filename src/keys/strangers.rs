//! Other owners' tables that refer to an expired row which a user's statement removes.
//!
//! Actions of foreign keys run as the owners of the referencing tables; but, up to PostgreSQL
//! 17, what those tables' triggers defer runs as the user. A DELETE accepts that. An INSERT, by
//! which the extension removes the row, does not: REFERENCES on a table is no permission to run
//! code as its writers.

use super::plan;
use crate::error::Error;
use crate::pg::cascade::{self, Reached, Strangers};
use crate::pg::gate::{self, Bounded};
use crate::pg::{catalog, roles};
use pgrx::{PgSqlErrorCode, pg_sys};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

thread_local! {
    /// The tables that a deletion reaches, by the table that it deletes from.
    static REACHED: RefCell<HashMap<pg_sys::Oid, Rc<[Reached]>>> = RefCell::default();
}

/// Forgets all: some relation has changed, perhaps a reached one. Raises no error.
pub(super) fn forget() {
    REACHED.with_borrow_mut(HashMap::clear);
}

fn reached_from(relid: pg_sys::Oid) -> Rc<[Reached]> {
    if let Some(known) = REACHED.with_borrow(|all| all.get(&relid).cloned()) {
        return known;
    }
    let before = plan::generation();
    let found: Rc<[Reached]> = cascade::reached_from(relid).into();
    if plan::generation() == before {
        REACHED.with_borrow_mut(|all| all.insert(relid, Rc::clone(&found)));
    }
    found
}

/// Before a row is deleted with everything that this sets off: raises 42501 if other owners'
/// code would run as the current user. Where it could leave something behind, it restricts the
/// user's operation; the caller ends that.
pub(super) fn keep_in_bounds(relid: pg_sys::Oid) -> Option<Bounded> {
    match cascade::strangers(&reached_from(relid), roles::current_user()) {
        Strangers::None => None,
        Strangers::Restrict => Some(gate::bind()),
        Strangers::Refuse(other) => {
            let (table, other) = (
                catalog::qualified_name(relid),
                catalog::qualified_name(other),
            );
            Error::new(
                PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
                format!("cannot remove an expired row of table {table}"),
            )
            .detail(format!(
                "Its deletion cascades to table {other}, which belongs to somebody else, and whose triggers or rules would run with your rights."
            ))
            .hint(format!(
                "Triggers of {other} that fire before each row do not stand in the way, nor do any from PostgreSQL 18 on."
            ))
            .raise()
        }
    }
}

//! The tables to which the deletion of a row cascades.

use crate::error::Error;
use crate::pg::cascade::{self, Reached, Strangers};
use crate::pg::{activity, catalog, gate, roles};
use pgrx::{PgSqlErrorCode, pg_sys};

/// The tables that foreign keys change when a row of another table is deleted.
#[derive(Debug)]
pub(crate) struct Cascade(Vec<Reached>);

impl Cascade {
    /// Looks them up, for a worker. Refuses a cascade by which other owners' code would run with
    /// the rights of the owner, who deletes. Where such code could only leave something for
    /// later, restricts it.
    pub(crate) fn of(relid: pg_sys::Oid, owner: pg_sys::Oid) -> Result<Self, Error> {
        let reached = cascade::reached_from(relid);
        heed(cascade::strangers(&reached, owner))?;
        Ok(Self(reached))
    }

    /// How many rows of these tables the transaction has deleted or updated.
    pub(crate) fn changed(&self) -> u64 {
        let tables = self.0.iter().map(|reached| reached.table);
        tables.map(activity::rows_changed_in_transaction).sum()
    }
}

/// As [`Cascade::of`], for a deletion in a user's session, as the current user.
pub(crate) fn heed_strangers(relid: pg_sys::Oid) -> Result<(), Error> {
    let reached = cascade::reached_from(relid);
    heed(cascade::strangers(&reached, roles::current_user()))
}

fn heed(strangers: Strangers) -> Result<(), Error> {
    match strangers {
        Strangers::None => Ok(()),
        Strangers::Restrict => {
            gate::restrict();
            Ok(())
        }
        Strangers::Refuse(table) => Err(Error::new(
            PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
            format!(
                "triggers of table {}, to which deletion cascades, would run with the rights of another owner",
                catalog::qualified_name(table)
            ),
        )),
    }
}

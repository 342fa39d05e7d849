//! Deletion in a session's own transaction, before a statement that reads all rows.

use super::archiving::Locks;
use super::deleter::Deleter;
use super::job::Job;
use super::{message, receiver, underway};
use crate::error::Error;
use crate::pg::catalog::roles;
use crate::pg::session::gate::GateVisit;
use crate::pg::session::{txn, xact};
use pgrx::pg_sys;

/// The most attempts that may fail before the rest is left.
const MAX_FAILURES: u32 = 1000;

/// Deletes the expired rows that can be deleted, in subtransactions, as the current user;
/// returns the first error of those that cannot. An `Err` is no row's: the statement was
/// cancelled, memory ran out and the like.
///
/// First all at once. If that fails, by halves of the table, down to the single row: one row
/// that a foreign key holds must not keep the others.
pub(crate) fn delete_what_can_go(
    visit: &GateVisit,
    relid: pg_sys::Oid,
) -> Result<Option<Error>, Error> {
    let Some(job) = Job::of(relid) else {
        return Ok(None);
    };
    let deleter = match Deleter::new(visit, &job, Locks::Wait) {
        Ok(deleter) => deleter,
        Err(failure) => return Ok(Some(failure)),
    };
    let failure = match txn::nested(|| Ok(deleter.delete_expired())) {
        Ok(_) => return Ok(None),
        Err(failure) if is_of_rows(&failure) => failure,
        Err(failure) => return Err(failure),
    };
    let blocks = deleter.table.blocks();
    let mut pieces = Pieces {
        deleter: &deleter,
        remaining: MAX_FAILURES,
    };
    message::begin(&job.name);
    let delete = || pieces.delete_blocks(0, blocks);
    let deleted = underway::during(roles::current_user(), None, delete)?;
    message::end(&job.name, deleted);
    Ok(Some(failure))
}

/// Whether the rows cause the error, by their triggers or foreign keys, and not the server, a
/// deadlock, a lock timeout or a cancellation.
fn is_of_rows(failure: &Error) -> bool {
    let sqlstate = failure.sqlstate();
    ![
        "08", "40", "53", "55P03", "57", "58", "HV", "XX001", "XX002",
    ]
    .iter()
    .any(|class| sqlstate.starts_with(class))
}

struct Pieces<'a> {
    deleter: &'a Deleter<'a>,
    /// How many attempts may still fail.
    remaining: u32,
}

impl Pieces<'_> {
    fn delete_blocks(&mut self, from: u32, to: u32) -> Result<u64, Error> {
        if from >= to || self.remaining == 0 {
            return Ok(0);
        }
        let condition = format!(
            "ctid OPERATOR(pg_catalog.>=) '({from},0)'::pg_catalog.tid \
             AND ctid OPERATOR(pg_catalog.<) '({to},0)'::pg_catalog.tid AND "
        );
        if let Some(deleted) = self.attempt(&condition)? {
            return Ok(deleted);
        }
        let middle = from + (to - from) / 2;
        if middle > from {
            return Ok(self.delete_blocks(from, middle)? + self.delete_blocks(middle, to)?);
        }
        let mut deleted = 0;
        let Deleter { visit, job, .. } = self.deleter;
        let query = job.remaining(&condition);
        for row in receiver::collect(visit, job, &query, &[], usize::MAX) {
            let (block, offset) = row.tid();
            let row =
                format!("ctid OPERATOR(pg_catalog.=) '({block},{offset})'::pg_catalog.tid AND ");
            deleted += self.attempt(&row)?.unwrap_or(0);
        }
        Ok(deleted)
    }

    /// Deletes the expired ones of these rows; `None` if that fails, which was undone.
    fn attempt(&mut self, condition: &str) -> Result<Option<u64>, Error> {
        if self.remaining == 0 {
            return Ok(None);
        }
        match txn::nested(|| Ok(self.deleter.by_statement(condition, &[]))) {
            Ok(deleted) => {
                xact::next_command();
                Ok(Some(deleted))
            }
            Err(failure) if is_of_rows(&failure) => {
                self.remaining -= 1;
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }
}

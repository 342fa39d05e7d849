//! A batch deleted by DELETE, for what only a statement does: BEFORE triggers, conditions of
//! triggers, rules, other table access methods.

use super::cascade_size::Cascade;
use super::deleter::Deleter;
use super::message;
use super::receiver::{self, FoundRow, Tally};
use crate::error::Error;
use crate::pg::exec::tids;
use crate::pg::session;

/// What the DELETE has done.
#[derive(Default)]
pub(super) struct Deleted {
    /// Rows changed, including those changed by cascades.
    pub(super) touched: u64,
    /// Rows that a trigger or rule has kept.
    pub(super) kept: Vec<FoundRow>,
}

/// Locks the rows that the query finds, at most `limit`, and no other transaction has locked, deletes them, and looks
/// at what a trigger or rule has kept. `before` is called with them before user-defined code runs.
pub(super) fn delete(
    deleter: &Deleter<'_>,
    query: &str,
    limit: u32,
    before: &dyn Fn(&[FoundRow]),
    tally: &mut Tally,
) -> Result<Deleted, Error> {
    let (visit, job) = (deleter.visit, deleter.job);
    let rows = session::index_only(|| {
        receiver::collect_locked(visit, job, &deleter.table, query, limit, tally)
    });
    // From here on a failure does not tell which row it is.
    let mut counted = std::mem::take(tally);
    if rows.is_empty() {
        *tally = counted;
        return Ok(Deleted::default());
    }
    let cascade = Cascade::begin(job.relid);
    before(&rows);
    message::begin(&job.name);
    let tids = [tids::parameter(rows.iter().map(FoundRow::tid))];
    let deleted = deleter.by_statement(AMONG, &tids);
    let mut done = Deleted {
        touched: deleted + cascade.touched(),
        ..Deleted::default()
    };
    if deleted < rows.len() as u64 {
        let kept = job.remaining(AMONG);
        done.kept = session::index_only(|| receiver::collect(visit, job, &kept, &tids, rows.len()));
    }
    counted.deleted = deleted + cascade.deleted();
    *tally = counted;
    Ok(done)
}

/// The condition "one of these rows, and". A sub-select, because the planner would estimate each
/// element of an array that it sees: a seventh of the whole work.
const AMONG: &str = "ctid OPERATOR(pg_catalog.=) ANY ((SELECT $1)::pg_catalog.tid[]) AND ";

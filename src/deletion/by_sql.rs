//! A batch deleted by DELETE, for what only a statement does: BEFORE triggers, conditions of
//! triggers, rules, other table access methods.

use super::batch::{Batch, BatchResult};
use super::cascade_size::Cascade;
use super::message;
use super::receiver::{self, FoundRow, Tally};
use crate::error::Error;
use crate::pg::exec::tids;
use crate::pg::session;

/// Locks the rows that the query finds and no other transaction has locked, deletes them, and looks at what a
/// trigger or rule has kept.
pub(super) fn delete(batch: &Batch<'_>, tally: &mut Tally) -> Result<BatchResult, Error> {
    let deleter = batch.deleter;
    let (visit, job) = (deleter.visit, deleter.job);
    let rows = session::index_only(|| {
        receiver::collect_locked(visit, job, &deleter.table, batch.query, batch.limit, tally)
    });
    // From here on a failure does not tell which row it is.
    let mut counted = std::mem::take(tally);
    if rows.is_empty() {
        *tally = counted;
        return Ok(BatchResult::default());
    }
    let cascade = Cascade::begin(job.relid);
    batch.at_rows.set(true);
    if let [single] = rows.as_slice() {
        (batch.on_single)(*single);
    }
    message::begin(&job.name);
    let tids = [tids::parameter(rows.iter().map(FoundRow::tid))];
    let deleted = deleter.by_statement(AMONG, &tids);
    let mut done = BatchResult {
        touched: deleted + cascade.touched(),
        ..BatchResult::default()
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

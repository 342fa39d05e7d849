//! A batch deleted by DELETE, for what only a statement does: BEFORE triggers, conditions of
//! triggers, rules, other table access methods.

use super::batch::{Batch, Done};
use super::cascade::Cascade;
use super::job::Job;
use super::message;
use super::receiver::{self, FoundRow, Tally};
use super::set_aside::tid_array;
use crate::error::Error;
use crate::pg::gate::Visit;
use crate::pg::{query, roles, session};
use crate::visibility::statement;
use std::collections::HashSet;

/// Selects rows, locks those that nobody has locked, deletes them, and looks at what a trigger or
/// rule has kept.
pub(super) fn delete(batch: &Batch<'_>, tally: &mut Tally) -> Result<Done, Error> {
    let job = batch.job;
    let select = |query: &str| {
        session::index_only(|| {
            statement::with_expired_rows_of(job.relid, || {
                receiver::collect(batch.visit, query, batch.limit as usize)
            })
        })
    };
    let found = select(batch.query);
    let (Some(first), Some(last)) = (found.first().copied(), found.last().copied()) else {
        return Ok(Done::default());
    };
    // Rows that another session has locked, or just changed, are left out.
    let locking = format!("{} FOR UPDATE SKIP LOCKED", job.remaining(&among(&found)));
    let rows = select(&locking);
    let tids: HashSet<(u32, u16)> = rows.iter().map(FoundRow::tid).collect();
    let mut left = found.iter().filter(|row| !tids.contains(&row.tid()));
    tally.first_locked = left.next().and_then(|row| row.key);
    tally.found = found.len() as u64;
    tally.locked = tally.found - rows.len() as u64;
    tally.first = Some(first);
    if rows.is_empty() {
        tally.last = Some(last);
        return Ok(Done::default());
    }
    let cascade = Cascade::of(job.relid, roles::current_user())?;
    batch.at_rows.set(true);
    if let [single] = rows.as_slice() {
        (batch.on_single)(*single);
    }
    let before = cascade.changed();
    message::begin(&job.name);
    let condition = among(&rows);
    let deleted = update(batch.visit, job, &job.delete(&condition));
    let mut done = Done {
        touched: deleted + cascade.changed().saturating_sub(before),
        ..Done::default()
    };
    if deleted < rows.len() as u64 {
        done.kept = select(&job.remaining(&condition));
    }
    tally.deleted = deleted;
    // Set at the end only: a failure does not tell which row it is.
    tally.last = Some(last);
    Ok(done)
}

/// The condition "one of these rows, and". A sub-select, because the planner would estimate each
/// element of an array that it sees: a seventh of the whole work.
fn among(rows: &[FoundRow]) -> String {
    let tids = tid_array(rows.iter().map(FoundRow::tid));
    format!("ctid OPERATOR(pg_catalog.=) ANY ((SELECT {tids})::pg_catalog.tid[]) AND ")
}

pub(super) fn update(visit: &Visit, job: &Job, query: &str) -> u64 {
    statement::with_expired_rows_of(job.relid, || query::execute(visit, query))
}

//! A batch deleted while a query finds it, whose AFTER triggers and foreign keys fire at its end:
//! to them it is one DELETE.

use super::batch::{Batch, Done};
use super::cascade::Cascade;
use super::message;
use super::receiver::{self, Manner, Tally};
use crate::error::Error;
use crate::pg::exec::after_delete::AfterDelete;
use crate::pg::exec::relation::Open;
use crate::pg::session;
use crate::visibility::statement;

/// Deletes what the query finds and no other transaction has locked, then fires the triggers.
pub(super) fn delete(batch: &Batch<'_>, table: &Open, tally: &mut Tally) -> Result<Done, Error> {
    let job = batch.job;
    let begin = message::for_begin(&job.name);
    let triggers = AfterDelete::begin(table.table());
    let manner = Manner {
        wait: false,
        begin: begin.as_deref(),
        triggers: Some(&triggers),
        named: &job.named,
    };
    // The settings are for this query, not for those of the triggers.
    session::index_only(|| {
        statement::with_expired_rows_of(job.relid, || {
            receiver::delete_selected(batch.visit, table, batch.query, manner, tally);
        });
    });
    // From here on a failure does not tell which row it is.
    let counted = std::mem::take(tally);
    let Some(row) = counted.last_deleted else {
        triggers.end(false);
        *tally = counted;
        return Ok(Done::default());
    };
    // No user-defined code has run yet.
    let cascade = Cascade::begin(job.relid);
    batch.at_rows.set(true);
    if counted.deleted == 1 {
        (batch.on_single)(row);
    }
    triggers.end(true);
    *tally = counted;
    let touched = tally.deleted + cascade.touched();
    tally.deleted += cascade.deleted();
    Ok(Done {
        touched,
        ..Done::default()
    })
}

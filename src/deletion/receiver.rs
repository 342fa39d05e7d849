//! Receivers that delete or collect a query's rows while it runs.
//!
//! The executor, in C, calls their functions, which call the table access method, in C, too.
//! They are unguarded, with nothing to drop, so that an error passes them unharmed
//! (`docs/decisions/0004-unguarded-trampolines.md`).

use super::deleter::Deleter;
use super::job::Job;
use super::message;
use crate::pg::exec::firing::Firing;
use crate::pg::exec::query::{self, Parameter, SentRow, Sql};
use crate::pg::exec::relation::OpenRelation;
use crate::pg::exec::wal;
use crate::pg::session::gate::GateVisit;
use crate::visibility::planned_statement;
use pgrx::pg_sys::TM_Result;

/// A row's TID, and its key: the value by which its index is ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoundRow {
    pub(crate) block: u32,
    pub(crate) offset: u16,
    /// `None`: the query gave none.
    pub(crate) key: Option<i64>,
}

impl FoundRow {
    /// Block and offset.
    pub(crate) fn tid(&self) -> (u32, u16) {
        (self.block, self.offset)
    }
}

/// What became of the rows that a query selected.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) found: u64,
    pub(crate) deleted: u64,
    /// Locked, or being changed by another session.
    pub(crate) locked: u64,
    /// The key of the first row that was not deleted because it was locked.
    pub(crate) first_locked: Option<i64>,
    pub(crate) first: Option<FoundRow>,
    pub(crate) last: Option<FoundRow>,
    pub(crate) last_deleted: Option<FoundRow>,
}

/// Runs a query over the deleter's table ([`Sql::over`]) that selects `ctid` and a timestamptz key, and deletes
/// each row as it comes, by the table access method; its triggers are queued in `triggers`, and none fires meanwhile. A
/// row changed since the query's snapshot is left alone in any case.
///
/// The caller holds a lock on the table that allows deleting, and has made sure that DELETE
/// has no side effects but the queued triggers. After an error, `tally.last` is the row that it
/// happened at.
pub(super) fn delete_selected(
    deleter: &Deleter<'_>,
    query: &str,
    triggers: Option<Firing<'_>>,
    tally: &mut Tally,
) {
    let (job, table) = (deleter.job, deleter.table.table());
    // Written to the WAL before the first deletion.
    let begin = message::for_begin(&job.name);
    let receive = |sent: SentRow<'_>| {
        let row = found(sent);
        tally.found += 1;
        if tally.first.is_none() {
            tally.first = Some(row);
            if let Some(begin) = begin.as_deref() {
                wal::write_message(message::PREFIX, begin);
            }
        }
        tally.last = Some(row);
        let tid = sent.tid(1);
        match table.delete_at(tid, None, false) {
            Some(TM_Result::TM_Ok) => {
                tally.deleted += 1;
                tally.last_deleted = Some(row);
                if let Some(triggers) = triggers {
                    triggers.queue(tid);
                }
            }
            Some(TM_Result::TM_BeingModified | TM_Result::TM_WouldBlock) => {
                tally.locked += 1;
                if tally.first_locked.is_none() {
                    tally.first_locked = row.key;
                }
            }
            // Changed or deleted since; the new version is judged by itself.
            _ => {}
        }
        true
    };
    let query = Sql::over(job.relid, query).among(&job.named);
    planned_statement::with_expired_rows_of(job.relid, || {
        // SAFETY: nothing to drop in the closure; the query selects these columns.
        unsafe { query::send(deleter.visit, query, &[], receive) }
    });
}

/// Runs such a query and collects what it selects, at most `limit` rows.
pub(crate) fn collect(
    visit: &GateVisit,
    job: &Job,
    query: &str,
    parameters: &[Parameter],
    limit: usize,
) -> Vec<FoundRow> {
    let mut rows = Vec::with_capacity(limit.min(10_000));
    let receive = |sent: SentRow<'_>| {
        if rows.len() < limit {
            rows.push(found(sent));
        }
        rows.len() < limit
    };
    let query = Sql::over(job.relid, query).among(&job.named);
    planned_statement::with_expired_rows_of(job.relid, || {
        // SAFETY: nothing to drop in the closure; the query selects these columns.
        unsafe { query::send(visit, query, parameters, receive) }
    });
    rows
}

/// Runs such a query, of at most `limit` rows, and collects those that it could lock; others are
/// counted.
pub(crate) fn collect_locked(
    visit: &GateVisit,
    job: &Job,
    relation: &OpenRelation,
    query: &str,
    limit: u32,
    tally: &mut Tally,
) -> Vec<FoundRow> {
    let most = limit as usize;
    let mut rows = Vec::with_capacity(most);
    relation.table().with_slot_guarded(|slot| {
        let receive = |sent: SentRow<'_>| {
            let row = found(sent);
            tally.found += 1;
            tally.first = tally.first.or(Some(row));
            tally.last = Some(row);
            match slot.try_lock(sent.tid(1)) {
                // There is room: nothing is allocated here.
                Some(TM_Result::TM_Ok) if rows.len() < most => rows.push(row),
                Some(TM_Result::TM_BeingModified | TM_Result::TM_WouldBlock) => {
                    tally.locked += 1;
                    tally.first_locked = tally.first_locked.or(row.key);
                }
                // Changed or deleted since; the new version is judged by itself.
                _ => {}
            }
            true
        };
        let query = Sql::over(relation.oid(), query).among(&job.named);
        planned_statement::with_expired_rows_of(job.relid, || {
            // SAFETY: nothing to drop in the closure; the query selects these columns.
            unsafe { query::send(visit, query, &[], receive) }
        });
    });
    rows
}

#[inline]
fn found(sent: SentRow<'_>) -> FoundRow {
    let key = sent.value(2).map(|key| key.value() as i64);
    let (block, offset) = query::tid_parts(sent.tid(1));
    FoundRow { block, offset, key }
}

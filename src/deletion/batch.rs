//! One batch: a transaction that deletes expired rows of one table, as its owner.

use super::cascade::{Cascade, heed_strangers};
use super::job::{DeletionWay, Job};
use super::receiver::{self, FoundRow, Tally};
use super::set_aside::tid_array;
use super::{message, probe, transaction};
use crate::error::Error;
use crate::pg::gate::{self, Stay, Visit};
use crate::pg::timeout::Limit;
use crate::pg::{catalog, locks, query, relation, roles, session, xact};
use crate::store::{cache, policy_lock};
use crate::visibility::statement;
use pgrx::{PgSqlErrorCode, pg_sys};
use std::cell::Cell;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// What a batch has done.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) tally: Tally,
    /// Rows changed, including those changed by cascades.
    pub(crate) touched: u64,
    /// Rows that a trigger or rule has kept.
    pub(crate) kept: Vec<FoundRow>,
    pub(crate) took: Duration,
}

/// Why a batch was rolled back.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The table could not be worked on: locked, changed, gone, no resources.
    Table(Error),
    /// A row could not be deleted: this one, if it is known.
    Row(Error, Option<FoundRow>),
    /// As `Row`, after so long that other tables should have their turn.
    Slow(Error),
}

/// What `ttl.purge` has done to one table.
pub(crate) struct Purged {
    /// Rows deleted in the table itself, without cascades.
    pub(crate) rows: u64,
}

/// Deletes the rows that `query` selects, at most `limit`, in a transaction of its own. Locked
/// rows are skipped. Before SQL deletes a single row, `on_single` is told of it: user code may
/// end the process.
pub(crate) fn run(
    job: &Job,
    query: &str,
    limit: u32,
    on_single: &dyn Fn(FoundRow),
) -> Result<Done, Trouble> {
    let began = Instant::now();
    let mut tally = Tally::default();
    let at_rows = Cell::new(false);
    let (user_code, begun) = (Cell::new(false), Cell::new(false));
    let result = transaction::run(|| {
        let owner = enter(job)?;
        // Deferred triggers fire at commit: the worker stays the owner until after it.
        let visit = &probe::become_owner(owner, Stay::UntilCommitted)?;
        let table = relation::Open::locked(job.relid);
        table.check_replica_identity();
        let done = match deletion_way(&table) {
            DeletionWay::Direct => {
                let begin = message::for_begin(&job.name);
                // No trigger fires, but planning the query runs functions of the owner.
                gate::restrict();
                session::index_only(|| {
                    statement::with_expired_rows_of(job.relid, || {
                        receiver::delete_selected(
                            visit,
                            &table,
                            query,
                            false,
                            begin.as_deref(),
                            &mut tally,
                        );
                    });
                });
                Done {
                    touched: tally.deleted,
                    ..Done::default()
                }
            }
            DeletionWay::Sql => {
                user_code.set(true);
                let done =
                    delete_by_sql(visit, job, query, limit, on_single, &mut tally, &at_rows)?;
                begun.set(at_rows.get());
                done
            }
        };
        if tally.first.is_some() && (begun.get() || !user_code.get()) {
            message::end(&job.name, tally.deleted);
        }
        Ok(done)
    });
    let too_long = Limit::exceeded();
    if user_code.get()
        && let Err(failure) = transaction::discard_all()
    {
        // Nothing of a user's may stay in the session: better to end the process.
        failure.raise_fatal();
    }
    match result {
        Ok(done) => Ok(Done {
            tally,
            took: began.elapsed(),
            ..done
        }),
        Err(failure) => Err(classify(failure, too_long, &tally, at_rows.get())),
    }
}

/// Whether a row, the table or the server caused the failure.
fn classify(failure: Error, too_long: bool, tally: &Tally, at_rows: bool) -> Trouble {
    let reached_rows = at_rows || tally.last.is_some();
    // Resources, shutdown, cancellation, the system.
    let of_the_server = ["53", "57", "58"]
        .iter()
        .any(|class| failure.sqlstate().starts_with(class));
    if too_long && reached_rows {
        Trouble::Slow(failure)
    } else if of_the_server {
        Trouble::Table(failure)
    } else if tally.last.is_some() {
        // The table access method failed at this row.
        Trouble::Row(failure, tally.last)
    } else if at_rows {
        Trouble::Row(failure, None)
    } else {
        Trouble::Table(failure)
    }
}

/// Takes the locks without waiting, and checks that nothing has changed; returns the table's
/// owner.
fn enter(job: &Job) -> Result<pg_sys::Oid, Error> {
    let unavailable = |what: &str| {
        Error::new(
            PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE,
            format!("could not obtain lock on {what} {}", job.name),
        )
    };
    if !policy_lock::try_share_extension() {
        return Err(unavailable("the extension that rules relation"));
    }
    if !policy_lock::try_share_policy(job.policy.labelled_table) {
        return Err(unavailable("the time to live of relation"));
    }
    // While its ancestors are locked, the table cannot be moved to another one.
    let ancestors = catalog::ancestors(job.relid);
    let shared = ancestors
        .into_iter()
        .all(|ancestor| locks::try_relation(ancestor, pg_sys::AccessShareLock));
    if !shared || !locks::try_relation(job.relid, pg_sys::RowExclusiveLock) {
        return Err(unavailable("relation"));
    }
    let unchanged = cache::policy(job.relid).as_ref() == Some(&job.policy)
        && catalog::qualified_name(job.relid) == job.name;
    match catalog::class(job.relid) {
        Some(class) if unchanged && class.relkind == pg_sys::RELKIND_RELATION => Ok(class.owner),
        _ => Err(Error::new(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("{} has changed meanwhile", job.name),
        )),
    }
}

/// A heap whose DELETE has no side effects is deleted from directly.
fn deletion_way(table: &relation::Open) -> DeletionWay {
    if table.deletion_concerns_others() {
        DeletionWay::Sql
    } else {
        DeletionWay::Direct
    }
}

fn delete_by_sql(
    visit: &Visit,
    job: &Job,
    query: &str,
    limit: u32,
    on_single: &dyn Fn(FoundRow),
    tally: &mut Tally,
    at_rows: &Cell<bool>,
) -> Result<Done, Error> {
    let select = |query: &str| {
        session::index_only(|| {
            statement::with_expired_rows_of(job.relid, || {
                receiver::collect(visit, query, limit as usize)
            })
        })
    };
    let found = select(query);
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
    at_rows.set(true);
    if let [single] = rows.as_slice() {
        on_single(*single);
    }
    let before = cascade.changed();
    message::begin(&job.name);
    let condition = among(&rows);
    let deleted = update(visit, job, &job.delete(&condition));
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

pub(crate) fn update(visit: &Visit, job: &Job, query: &str) -> u64 {
    statement::with_expired_rows_of(job.relid, || query::execute(visit, query))
}

/// Deletes all expired rows of the table in the current transaction, as the current user; waits
/// for locked rows. For `ttl.purge`; the caller holds ROW EXCLUSIVE.
pub(crate) fn delete_all(visit: &Visit, relid: pg_sys::Oid) -> Result<Purged, Error> {
    let Some(job) = Job::of(relid) else {
        return Ok(Purged { rows: 0 });
    };
    let table = relation::Open::locked(relid);
    table.check_replica_identity();
    let rows = match deletion_way(&table) {
        DeletionWay::Direct => {
            let mut tally = Tally::default();
            let begin = message::for_begin(&job.name);
            statement::with_expired_rows_of(relid, || {
                receiver::delete_selected(
                    visit,
                    &table,
                    &job.remaining(&job.past()),
                    true,
                    begin.as_deref(),
                    &mut tally,
                );
            });
            if tally.first.is_some() {
                message::end(&job.name, tally.deleted);
            }
            tally.deleted
        }
        DeletionWay::Sql => {
            heed_strangers(relid)?;
            message::begin(&job.name);
            let rows = statement::in_session(|| update(visit, &job, &job.delete(&job.past())));
            message::end(&job.name, rows);
            rows
        }
    };
    xact::next_command();
    Ok(Purged { rows })
}

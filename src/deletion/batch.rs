//! One batch: a transaction that deletes expired rows of one table, as its owner.

use super::archiving::Locks;
use super::deleter::Deleter;
use super::job::{DeletionWay, Job};
use super::receiver::{self, FoundRow, Tally};
use super::{message, referring, underway, worker_transaction};
use crate::clock::held;
use crate::error::Error;
use crate::pg::catalog::replication::Origin;
use crate::pg::catalog::{self, cascade, roles};
use crate::pg::exec::firing::Firing;
use crate::pg::exec::query;
use crate::pg::server::timeout::TimeLimit;
use crate::pg::server::{activity, notify};
use crate::pg::session::{self, gate, locks, owner_session, xact};
use crate::policy::batch_payload;
use crate::settings;
use crate::store::{cache, policy_lock};
use pgrx::{PgSqlErrorCode, pg_sys};
use std::cell::Cell;
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(crate) struct BatchResult {
    pub(crate) tally: Tally,
    /// Rows changed, including those changed by cascades.
    pub(crate) touched: u64,
    /// Rows that a trigger or rule has kept.
    pub(crate) kept: Vec<FoundRow>,
    pub(crate) took: Duration,
}

/// Why a batch was rolled back.
#[derive(Debug)]
pub(crate) enum BatchFailure {
    /// The table could not be worked on: locked, changed, gone, no resources.
    Table(Error),
    /// A row could not be deleted: this one, if it is known.
    Row(Error, Option<FoundRow>),
    /// As `Row`, after so long that other tables should have their turn.
    Slow(Error),
}

/// Tells listeners what a purge has deleted.
pub(crate) fn notify(relid: pg_sys::Oid, rows: u64) {
    if let Some(job) = Job::of(relid) {
        send_notice(&job, rows);
    }
}

/// What [`run`] passes to the direct ways of deletion.
struct Batch<'a> {
    deleter: &'a Deleter<'a>,
    query: &'a str,
    on_single: &'a dyn Fn(FoundRow),
    /// Set before code of users runs that may fail because of a row.
    at_rows: &'a Cell<bool>,
}

/// Deletes the rows that `query` selects, at most `limit`, in a transaction of its own. Locked
/// rows are skipped. Before SQL deletes a single row, `on_single` is called with it: user code may
/// end the process.
pub(crate) fn run(
    job: &Job,
    query: &str,
    limit: u32,
    on_single: &dyn Fn(FoundRow),
) -> Result<BatchResult, BatchFailure> {
    let began = Instant::now();
    let mut tally = Tally::default();
    let (at_rows, ended) = (Cell::new(false), Cell::new(false));
    let (user_code, begun) = (Cell::new(false), Cell::new(false));
    let former = underway::begin();
    // Until after the commit, which has the origin, too.
    let origin = (!settings::replicate_deletions()).then(Origin::of_none);
    let result = worker_transaction::run(|| {
        enter(job)?;
        if cascade::reaches_strangers(job.relid, roles::current_user()) {
            gate::restrict_transaction(roles::current_user());
            // PostgreSQL would refuse to, also where no row refers.
            xact::defer_nothing();
        }
        let visit = &owner_session::visit(job.relid)?;
        underway::set_root(roles::current_user(), None);
        let deleter = Deleter::new(visit, job, Locks::Try)?;
        deleter.table.check_replica_identity();
        let batch = Batch {
            deleter: &deleter,
            query,
            on_single,
            at_rows: &at_rows,
        };
        if deleter.way() != DeletionWay::Direct {
            user_code.set(true);
            owner_session::note_code();
        }
        let done = match deleter.way() {
            DeletionWay::Direct => delete_directly(&batch, &mut tally),
            DeletionWay::Queuing => {
                let done = queue_triggers(&batch, &mut tally);
                begun.set(true);
                done
            }
            DeletionWay::Sql => {
                let before = |rows: &[FoundRow]| {
                    at_rows.set(true);
                    if let [single] = rows {
                        on_single(*single);
                    }
                };
                let done = delete_by_sql(&deleter, query, limit, &before, &mut tally)?;
                begun.set(at_rows.get());
                BatchResult {
                    touched: done.touched,
                    kept: done.kept,
                    ..BatchResult::default()
                }
            }
        };
        ended.set(true);
        if tally.first.is_some() && (begun.get() || !user_code.get()) {
            message::end(&job.name, tally.deleted);
        }
        send_notice(job, tally.deleted);
        Ok(done)
    });
    drop(origin);
    // After the commit, so that deferred triggers know, too.
    underway::end(former);
    let too_long = TimeLimit::exceeded();
    match result {
        Ok(done) => Ok(BatchResult {
            tally,
            took: began.elapsed(),
            ..done
        }),
        Err(failure) => {
            // What comes after the last row, such as a full queue of notifications at the commit, is not that row's.
            let at = tally.last.filter(|_| !ended.get());
            Err(classify(failure, too_long, at, at_rows.get()))
        }
    }
}

/// Whether a row, the table or the server caused the failure: `at` this row, or while code of users ran for rows.
fn classify(failure: Error, too_long: bool, at: Option<FoundRow>, at_rows: bool) -> BatchFailure {
    let reached_rows = at_rows || at.is_some();
    // Connections (of a foreign table), resources, shutdown, cancellation, the system.
    let of_the_server = ["08", "53", "57", "58", "HV"]
        .iter()
        .any(|class| failure.sqlstate().starts_with(class));
    // 54000 also says that no transaction IDs are left.
    let is_read_only = || {
        let write = || {
            xact::assign_id();
            Ok(())
        };
        failure.code == PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED
            && worker_transaction::run(write).is_err()
    };
    if too_long && reached_rows {
        BatchFailure::Slow(failure)
    } else if of_the_server || is_read_only() {
        BatchFailure::Table(failure)
    } else if at_rows {
        // Also at commit, by a deferred trigger.
        BatchFailure::Row(failure, None)
    } else if at.is_some() {
        // The table access method failed at this row.
        BatchFailure::Row(failure, at)
    } else {
        BatchFailure::Table(failure)
    }
}

/// Takes the locks without waiting, and checks that nothing has changed.
fn enter(job: &Job) -> Result<(), Error> {
    let unavailable = |what: &str| {
        Error::new(
            PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE,
            format!("could not obtain lock on {what} {}", job.name),
        )
    };
    // By a time that was taken before: a clock that is set from now on does not count for this batch.
    if held::is_held() {
        return Err(Error::not_ready("deletion is held"));
    }
    if !policy_lock::try_share_extension() {
        return Err(unavailable("extension \"ttl_ext\" for relation"));
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
    let unchanged =
        unchanged && catalog::cascade::may_act_below(job.policy.labelled_table, job.relid);
    match catalog::class(job.relid) {
        Some(class) if unchanged && class.relkind == pg_sys::RELKIND_RELATION => Ok(()),
        _ => Err(Error::not_ready(format!(
            "{} has changed meanwhile",
            job.name
        ))),
    }
}

/// Deletes rows while the query finds them.
fn delete_directly(batch: &Batch<'_>, tally: &mut Tally) -> BatchResult {
    session::index_only(|| receiver::delete_selected(batch.deleter, batch.query, None, tally));
    BatchResult {
        touched: tally.deleted,
        ..BatchResult::default()
    }
}

/// The same, and then fires AFTER triggers and foreign keys: to them the batch is one DELETE.
fn queue_triggers(batch: &Batch<'_>, tally: &mut Tally) -> BatchResult {
    let triggers = Firing::begin_statement(batch.deleter.table.table(), |_| false);
    // The settings are for this query, not for those of the triggers.
    session::index_only(|| {
        receiver::delete_selected(batch.deleter, batch.query, Some(triggers), tally);
    });
    // From here on a failure does not tell which row it is.
    let counted = std::mem::take(tally);
    let Some(row) = counted.last_deleted else {
        triggers.end(false);
        *tally = counted;
        return BatchResult::default();
    };
    // No user-defined code has run yet.
    let cascade = Cascade::begin(batch.deleter.job.relid);
    batch.at_rows.set(true);
    if counted.deleted == 1 {
        (batch.on_single)(row);
    }
    triggers.end(true);
    *tally = counted;
    let touched = tally.deleted + cascade.touched();
    tally.deleted += cascade.deleted();
    BatchResult {
        touched,
        ..BatchResult::default()
    }
}

/// What the DELETE has done.
#[derive(Default)]
struct Deleted {
    /// Rows changed, including those changed by cascades.
    touched: u64,
    /// Rows that a trigger or rule has kept.
    kept: Vec<FoundRow>,
}

/// What only a statement does: BEFORE triggers, conditions of triggers, rules, other table access methods. Locks the
/// rows that the query finds, at most `limit`, and no other transaction has locked, deletes them, and looks
/// at what a trigger or rule has kept. `before` is called with them before user-defined code runs.
fn delete_by_sql(
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
    let tids = [query::tids(rows.iter().map(FoundRow::tid))];
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

/// The tables that foreign keys change when rows of another table are deleted.
#[derive(Debug)]
pub(crate) struct Cascade {
    reached: Vec<pg_sys::Oid>,
    before: u64,
}

impl Cascade {
    /// Begins to count.
    pub(crate) fn begin(relid: pg_sys::Oid) -> Self {
        referring::count(relid);
        let mut begun = Self {
            reached: cascade::reached_from(relid).take(cascade::MANY).collect(),
            before: 0,
        };
        begun.before = begun.changed();
        begun
    }

    fn changed(&self) -> u64 {
        let tables = self.reached.iter().copied();
        tables.map(activity::rows_changed_in_transaction).sum()
    }

    /// How many rows of the table itself have gone because they refer to deleted ones.
    pub(crate) fn deleted(&self) -> u64 {
        referring::counted()
    }

    /// How many rows have been changed, with those.
    pub(crate) fn touched(&self) -> u64 {
        self.changed().saturating_sub(self.before) + self.deleted()
    }
}

/// Tells listeners, at commit, that rows of the table were deleted (C28).
fn send_notice(job: &Job, rows: u64) {
    if let Some(channel) = job.policy.label.notify.as_deref().filter(|_| rows > 0) {
        notify::send(channel, &batch_payload(&job.name, rows));
    }
}

//! A turn at one table (M9): until 50,000 rows, one second, or none left.

use super::drop_partition::{self, Whole};
use super::pace::Pace;
use super::without_deletion::{held_until, measure_backlog, rest, scheduled, unchanged};
use crate::deletion::job::Job;
use crate::deletion::referred::Referred;
use crate::deletion::set_aside::SetAside;
use crate::deletion::{batch, batch_size, probe, worker_transaction};
use crate::error::Error;
use crate::pg::catalog::{self, constraints};
use crate::pg::server::{activity, background, timeout};
use crate::settings;
use crate::store::paused_tables;
use crate::worker::queue::fairness::{PATIENCE, Spent};
use crate::worker::queue::schedule::{self, Outcome};
use crate::worker::shared::state::{self, Progress, TableKey};
use crate::worker::shared::worker_report::{self, Phase};
use crate::worker::shared::{self, blocked, claims, log, processes, requested, wakeups};
use pgrx::{PgSqlErrorCode, pg_sys};
use std::time::{Duration, Instant};

/// M9: a turn ends after this number of rows,
const ROWS: u64 = 50_000;
/// or so much time.
const TIME: Duration = Duration::from_secs(1);
/// So long a turn is put off while another worker is at a table of the same ring of foreign keys, in microseconds.
const FORESTALLED: i64 = 100_000;
/// After so much time for rows that cannot be deleted, others are tried.
const FUTILE: Duration = Duration::from_millis(50);
/// Rows that cannot be deleted take at most this fraction of a worker's time.
const FUTILE_SHARE: i64 = 100;
/// From this number of failures in a row, the problem counts as lasting.
const LONG: u32 = 5;

pub(in crate::worker) struct Turn<'a> {
    pub(in crate::worker) key: TableKey,
    pub(in crate::worker) job: Job,
    pub(in crate::worker) pace: &'a mut Pace,
    pub(in crate::worker) began: Instant,
    pub(in crate::worker) rows: u64,
    pub(in crate::worker) progress: Progress,
    pub(in crate::worker) aside: SetAside,
    /// Rows that are left out since live ones refer to them.
    pub(in crate::worker) referred: Option<Referred>,
    /// The instant up to which each expiry key is done.
    pub(in crate::worker) cutoffs: Vec<i64>,
    /// The table is read block by block, since an index leads to what cannot be read.
    pub(in crate::worker) bypasses_indexes: bool,
    /// The blocks that the batch reads: from the first one to before the second.
    pub(in crate::worker) window: Option<(u32, u32)>,
    /// How long attempts at rows have taken that cannot be deleted, since others were last left out.
    pub(in crate::worker) futile: Duration,
}

/// How a step of a turn ends.
pub(in crate::worker) enum Step {
    /// The turn is over, and rows are left.
    Pause,
    /// This part is done.
    Finished,
}

/// Has one turn at a table, unless another worker has taken it; notes the outcome in shared memory.
/// Returns whether it has opened the table.
pub(in crate::worker) fn turn(key: TableKey, pace: &mut Pace) -> bool {
    let Some(limit) = claims::begin_turn(key, background::monotonic()) else {
        return false;
    };
    let drops = state::with_table(key, |state| state.drops).unwrap_or(false);
    if !drops && let Some(outcome) = unchanged(key) {
        claims::end_turn(key, outcome, Spent::default(), background::monotonic());
        return false;
    }
    // As long as a turn should take, plus two transactions of the longest kind.
    let whole = TIME + limit * 2;
    timeout::TimedTurn::begin(limit, whole, limit.min(PATIENCE));
    let outcome = work(key, drops, pace);
    let outcome = outcome.unwrap_or_else(|failure| {
        if !is_passing(key, &failure) {
            note_failure(key, &failure);
            state::with_table(key, |state| state.failing = true);
        } else if failure.sqlstate() == "55000" {
            // The owner has changed, perhaps: the scheduler notices, and another process takes over.
            wakeups::tell_of_change(key.database);
        }
        timeout::TimedTurn::leave(limit / 2);
        measure_backlog(key);
        Outcome::Failed
    });
    let spent = timeout::TimedTurn::end();
    let spent = Spent {
        took: spent.took,
        longest: spent.longest,
        timed_out: spent.timed_out,
        dawdled: false,
    };
    if claims::end_turn(key, outcome, spent, background::monotonic()) {
        log::slow(key);
    }
    // For a correct pg_stat_activity, and for autovacuum's counters.
    activity::idle();
    activity::report_statistics();
    true
}

fn work(key: TableKey, drops: bool, pace: &mut Pace) -> Result<Outcome, Error> {
    let nothing = Outcome::Done {
        next_expiry: None,
        leftover: false,
        interval: 0,
    };
    if shared::is_deletion_held() {
        return Ok(rest(key, held_until()));
    }
    if drops && drop_whole(key)? {
        return Ok(nothing);
    }
    if let Some(outcome) = unchanged(key) {
        return Ok(outcome);
    }
    let Some(job) = probe::job(key.relid.into())? else {
        if !probe::has_policy(key.relid.into())? {
            // It has left its parent, and may have come back meanwhile: the scheduler begins anew with it.
            state::with_table(key, |state| state.fingerprint = 0);
            wakeups::tell_of_change(key.database);
        }
        return Ok(nothing);
    };
    let began = background::now();
    // Batches are deleted by this policy, or not at all.
    let paused = || paused_tables::at(job.policy.label.rest(), began).map(|resting| resting.until);
    if let Some(until) = job.policy.waits_until(began).or_else(paused) {
        return Ok(rest(key, scheduled(until)));
    }
    if has_been_forestalled(key)? {
        let until = background::monotonic().saturating_add(FORESTALLED);
        return Ok(Outcome::Resting { until, interval: 0 });
    }
    activity::working(&format!("ttl: deleting expired rows of {}", job.name));
    delete_requested(key, &job);
    let now = background::monotonic();
    if state::with_table(key, |state| state.schedule.is_only_requested(now)) == Some(true) {
        return Ok(Outcome::Requested);
    }
    // Another worker has just found that the table is not to be swept any more.
    Turn::begin(key, job, pace).map_or(Ok(nothing), Turn::run)
}

/// Deletes the rows that sessions wait for, one by one: what keeps one does not concern the others. A pass deals with what
/// stays.
fn delete_requested(key: TableKey, job: &Job) {
    for row in requested::take(key) {
        let done = batch::run(job, &job.expired_at(&[row]), 1, &|_| {});
        let deleted = done.map_or(0, |done| done.tally.deleted);
        state::with_table(key, |state| {
            let rows = i64::try_from(deleted).unwrap_or(0);
            state.counters.batches += i64::from(rows > 0);
            state.counters.rows_deleted += rows;
            state.counters.backlog = (state.counters.backlog - rows).max(0);
        });
    }
}

/// Whether another worker is at a table that this one refers to and that refers to it. Rows that expire together
/// would be locked by both workers, each of which would wait for the other's.
fn has_been_forestalled(key: TableKey) -> Result<bool, Error> {
    let others = processes::tables_of_earlier_turns();
    if others.is_empty() {
        return Ok(false);
    }
    let table = pg_sys::Oid::from(key.relid);
    worker_transaction::run(|| {
        let is_related = |other: u32| constraints::refer_to_each_other(table, other.into());
        Ok(others.into_iter().any(is_related))
    })
}

/// Tries to drop the partition as a whole. If that is impossible, except for a lock that may
/// soon be free, its rows are deleted, and the attempt is not repeated for a while: it may read
/// the whole partition, or has made others wait.
fn drop_whole(key: TableKey) -> Result<bool, Error> {
    const AFTER_FAILURE: i64 = 600_000_000;
    let before = state::with_table(key, |state| state.not_whole_before).unwrap_or(0);
    let began = background::monotonic();
    if began < before {
        return Ok(false);
    }
    worker_report::phase(Phase::DroppingPartition);
    let dropped = drop_partition::drop_if_past(key);
    worker_report::phase(Phase::Preparing);
    let pause = match dropped {
        Ok(Whole::Dropped) => return Ok(true),
        Ok(Whole::NotYet) => return Ok(false),
        Ok(Whole::Kept) => schedule::interval(background::monotonic().saturating_sub(began)),
        Ok(Whole::NotKnown) => {
            return Err(Error::new(
                PgSqlErrorCode::ERRCODE_QUERY_CANCELED,
                "timed out while checking the partition for live rows",
            ));
        }
        Err(failure) if is_passing(key, &failure) => return Err(failure),
        Err(failure) => {
            note_failure(key, &failure);
            AFTER_FAILURE
        }
    };
    state::with_table(key, |state| {
        state.not_whole_before = background::monotonic() + pause.max(settings::naptime());
    });
    Ok(false)
}

/// Whether the failure is a lock that cannot be had, or a change in between: no problem unless
/// it lasts.
fn is_passing(key: TableKey, failure: &Error) -> bool {
    let failures = state::with_table(key, |state| state.schedule.failures()).unwrap_or(0);
    failures < LONG && ["55P03", "55000"].contains(&failure.sqlstate().as_str())
}

/// Notes a failure and logs it, once per kind.
pub(in crate::worker) fn note_failure(key: TableKey, failure: &Error) {
    let text = failure.text();
    let is_known = state::with_table(key, |state| {
        let before = state.error.get();
        state.error.set(&text);
        state.counters.last_error_at = background::now();
        before.is_some() && before == state.error.get()
    });
    if is_known == Some(true) {
        // By an earlier process of the owner, perhaps.
        return;
    }
    if timeout::TimedTurn::has_timed_out() {
        // Slowness is logged once per table, when it is known to be slow.
        return;
    }
    let name = worker_transaction::run(|| Ok(catalog::qualified_name(key.relid.into())));
    // An error about a block is logged for each block, as its message names it; others once per SQLSTATE.
    let kind = match failure.may_be_of_a_block() {
        true => failure.message.clone(),
        false => failure.sqlstate(),
    };
    log::once(
        &format!("{} {kind}", key.relid),
        &format!(
            "could not delete expired rows of table {}: {text}",
            name.unwrap_or_default()
        ),
        "It is tried again, with growing pauses; see ttl.stats.",
    );
}

/// How long such rows are left alone after attempts that took so long.
pub(in crate::worker) fn futile_pause(futile: i64) -> i64 {
    futile.saturating_mul(FUTILE_SHARE)
}

pub(in crate::worker) fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

impl<'a> Turn<'a> {
    fn begin(key: TableKey, job: Job, pace: &'a mut Pace) -> Option<Self> {
        let now = background::monotonic();
        let written = activity::rows_written(key.relid.into());
        let catalogs = blocked::obstacles_written(key);
        let mut progress = Progress::default();
        let (mut died, mut single) = (false, None);
        let mut is_another = false;
        let mut tries_again = false;
        let mut referred = 0;
        state::with_table(key, |state| {
            // TRUNCATE or a rewrite: what is where is not known any more.
            is_another = state.file != 0 && state.file != job.file;
            state.file = job.file;
            if is_another {
                state.progress = Progress::default();
                state.single = None;
            }
            referred = state.referred;
            if state.progress.pass_began == 0 {
                let counts = referred > 0 && state.count_again_at <= now;
                let seen = std::mem::replace(&mut state.catalogs_seen, catalogs);
                tries_again = ![0, catalogs].contains(&seen) && catalogs != 0;
                if counts || tries_again {
                    // Some of them can be deleted now, perhaps.
                    state.progress.search_from_the_beginning();
                }
                let full = state.schedule.begins_full(settings::naptime(), now);
                let full = full || counts || tries_again;
                state.progress.begin_pass(now, full, written.unwrap_or(-1));
            }
            if state.progress.batch == 0 {
                state.progress.batch = batch_size::first(settings::batch_size());
            }
            died = std::mem::take(&mut state.died);
            if died {
                // The batch may hold what killed the worker: one row at a time.
                state.progress.batch = 1;
                single = state.single.take();
            }
            progress = state.progress;
            state.counters.sub_passes += 1;
        })?;
        if is_another {
            blocked::forget_all(key);
        }
        if tries_again {
            blocked::try_now(key, now);
        }
        if died {
            let failure = Error::new(
                PgSqlErrorCode::ERRCODE_ADMIN_SHUTDOWN,
                format!("a worker ended while it deleted from {}", job.name),
            );
            note_failure(key, &failure);
            if let Some(row) = single {
                // If there is no room for it, it is tried once more.
                blocked::set_aside(key, row, None, &failure, now);
            }
        }
        let mut turn = Self {
            key,
            cutoffs: job.cutoffs(background::now()),
            job,
            pace,
            began: Instant::now(),
            rows: 0,
            window: None,
            futile: Duration::ZERO,
            progress,
            aside: blocked::of(key, now),
            referred: None,
            bypasses_indexes: false,
        };
        // A pass over new rows only meets none of them, or a batch fails.
        if referred > 0 && !turn.progress.partial {
            turn.leave_out_referred();
            if turn.referred.is_none() {
                // The foreign key is gone, perhaps.
                state::with_table(key, |state| {
                    state.referred = 0;
                    state.schedule.search_again();
                });
            }
        }
        if !turn.aside.blocks.is_empty() {
            turn.bypass_indexes();
        }
        Some(turn)
    }

    fn run(mut self) -> Result<Outcome, Error> {
        let step = match self.steps() {
            Err(failure) if failure.may_be_of_a_block() => self.without_indexes(&failure),
            step => step,
        };
        let progress = self.progress;
        state::with_table(self.key, |state| state.progress = progress);
        match step? {
            Step::Pause if self.rests() => {
                let pause = futile_pause(std::mem::take(&mut self.progress.futile));
                state::with_table(self.key, |state| state.progress.futile = 0);
                Ok(Outcome::Resting {
                    until: background::monotonic().saturating_add(pause),
                    interval: 0,
                })
            }
            Step::Pause => Ok(Outcome::Unfinished),
            Step::Finished => self.finish(),
        }
    }

    /// Whether so much time has gone into rows that cannot be deleted that others are to be tried.
    pub(in crate::worker) fn is_futile(&self) -> bool {
        self.futile >= FUTILE
    }

    /// Whether the table is to be left alone for a while for that reason: there is no order in which
    /// the others could be found.
    fn rests(&self) -> bool {
        let ordered = self.progress.next_block < 0 && !self.job.reads_all();
        self.is_futile() && !ordered
    }

    pub(in crate::worker) fn is_over(&self) -> bool {
        self.rests()
            || self.rows >= ROWS
            || self.began.elapsed() >= TIME
            || paused_tables::at(self.job.policy.label.rest(), background::now()).is_some()
            || shared::is_deletion_held()
    }
}

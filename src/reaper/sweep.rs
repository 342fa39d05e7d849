//! A turn at one table (M9): until 50,000 rows, one second, or none left.

use super::batch::{self, Done, Trouble};
use super::batch_size::{self, Way};
use super::blocked::{self, SetAside};
use super::job::{Access, Job, Lane};
use super::pace::Pace;
use super::schedule::{self, Outcome};
use super::shared::{self, Progress, TableKey};
use super::tables::Target;
use super::{log, probe, whole};
use crate::pg::receiver::Found;
use crate::pg::txn::Failure;
use crate::pg::{activity, background};
use crate::settings;
use std::time::{Duration, Instant};

/// M9: a turn ends after so many rows,
const ROWS: u64 = 50_000;
/// or so much time.
const TIME: Duration = Duration::from_secs(1);
/// So many failures in a row are no passing matter.
const LONG: u32 = 5;
/// Deletion that has not come to an end after so many rows of a pass may be
/// better done in another way.
const MANY: u64 = 20_000;

/// A turn that is going on.
struct Turn<'a> {
    key: TableKey,
    job: Job,
    pace: &'a mut Pace,
    began: Instant,
    rows: u64,
    progress: Progress,
    aside: SetAside,
    /// The instant up to which each lane is done.
    cutoffs: [i64; 2],
    locked: u64,
    /// Rows are deleted by SQL, which does not show those that are locked.
    by_sql: bool,
    /// When the first row expired that is left because it is locked.
    oldest_locked: Option<i64>,
}

/// How a step of a turn ends.
enum Step {
    /// The turn is over: rows are left.
    Pause,
    /// This part is done.
    Finished,
}

/// One turn at a table that this process has claimed; notes in shared memory
/// what has come of it.
pub(super) fn turn(key: TableKey, target: Option<&Target>, pace: &mut Pace) {
    let outcome = work(key, target, pace);
    let now = background::now();
    let naptime = settings::naptime();
    let outcome = outcome.unwrap_or_else(|failure| {
        note_failure(key, &failure, now);
        Outcome::Failed
    });
    shared::with_table(key, |state| {
        state.claimed_by = 0;
        state.plan.after_turn(outcome, naptime, now);
    });
    // A pg_stat_activity that is right, and counters for autovacuum.
    activity::idle();
    activity::report_statistics();
}

fn work(key: TableKey, target: Option<&Target>, pace: &mut Pace) -> Result<Outcome, Failure> {
    let nothing = Outcome::Done {
        next_expiry: None,
        leftover: false,
        interval: 0,
    };
    if target.is_some_and(|target| target.drop_partitions) && drop_whole(key)? {
        return Ok(nothing);
    }
    let Some(job) = probe::job(key.relid.into())? else {
        return Ok(nothing);
    };
    activity::working(&format!("ttl: deleting expired rows of {}", job.name));
    Turn::begin(key, job, pace).run()
}

/// Tries to drop the partition as a whole. If that cannot be, but for a lock that
/// may be had soon, its rows are deleted.
fn drop_whole(key: TableKey) -> Result<bool, Failure> {
    whole::drop_if_past(key).or_else(|failure| {
        let failures = shared::with_table(key, |state| state.plan.failures()).unwrap_or(0);
        if failure.sqlstate() == "55P03" && failures < LONG {
            return Err(failure);
        }
        note_failure(key, &failure, background::now());
        Ok(false)
    })
}

/// Notes a failure, and logs it: once for each kind, and a lock that cannot be
/// had only if that goes on for long.
fn note_failure(key: TableKey, failure: &Failure, now: i64) {
    let text = failure.text();
    let failures = shared::with_table(key, |state| {
        state.set_error(&text);
        state.counters.last_error_at = now;
        state.plan.failures()
    });
    let passing = ["55P03", "55000"].contains(&failure.sqlstate().as_str());
    if passing && failures.unwrap_or(0) < LONG {
        return;
    }
    log::once(
        &format!("{} {}", key.relid, failure.message),
        &format!("could not delete expired rows: {text}"),
        "It is tried again, with growing pauses; see ttl.stats.",
    );
}

impl<'a> Turn<'a> {
    fn begin(key: TableKey, job: Job, pace: &'a mut Pace) -> Self {
        let now = background::now();
        let mut progress = Progress::new();
        shared::with_table(key, |state| {
            if state.progress.pass_began == 0 {
                let full = state.plan.begins_full(now);
                state.progress.begin_pass(now, full);
            }
            if state.progress.batch == 0 {
                state.progress.batch = batch_size::first(settings::batch_size());
            }
            if std::mem::take(&mut state.died) {
                // What killed the worker may be in there: carefully.
                state.progress.batch = 1;
            }
            progress = state.progress;
            state.counters.sub_passes += 1;
        });
        Self {
            key,
            job,
            pace,
            began: Instant::now(),
            rows: 0,
            progress,
            aside: blocked::of(key, now),
            cutoffs: [now; 2],
            locked: 0,
            by_sql: false,
            oldest_locked: None,
        }
    }

    fn run(mut self) -> Result<Outcome, Failure> {
        let step = self.steps();
        let progress = self.progress;
        shared::with_table(self.key, |state| state.progress = progress);
        match step? {
            Step::Pause => Ok(Outcome::Unfinished),
            Step::Finished => self.finish(),
        }
    }

    fn steps(&mut self) -> Result<Step, Failure> {
        let scans = self
            .job
            .lanes
            .iter()
            .any(|lane| lane.access == Access::Scan);
        if self.progress.next_block < 0 {
            for lane in self.job.lanes.clone() {
                if lane.access != Access::Scan
                    && let Step::Pause = self.trickle(&lane)?
                {
                    return Ok(Step::Pause);
                }
                if self.progress.next_block >= 0 {
                    break;
                }
            }
            if scans && self.progress.next_block < 0 {
                self.begin_blocks()?;
            }
        }
        if self.progress.next_block >= 0 {
            if let Step::Pause = self.backlog()? {
                return Ok(Step::Pause);
            }
            // What expired meanwhile behind the sweep is found by the indexes.
            if !scans {
                return Ok(Step::Pause);
            }
        }
        Ok(Step::Finished)
    }

    fn is_over(&self) -> bool {
        self.rows >= ROWS || self.began.elapsed() >= TIME
    }

    /// Deletes in the order of a lane's index, from where it stopped.
    fn trickle(&mut self, lane: &Lane) -> Result<Step, Failure> {
        loop {
            if self.is_over() {
                return Ok(Step::Pause);
            }
            let now = background::now();
            let limit = self.progress.batch;
            let low = self.progress.low[lane.number];
            let query = self
                .job
                .trickle(lane, low, now, &self.aside.exclusion(), limit);
            let Some(done) = self.batch(&query, limit, Some(lane))? else {
                continue;
            };
            if std::mem::take(&mut self.progress.full_search) {
                let cost = i64::try_from(done.took.as_micros()).unwrap_or(i64::MAX);
                shared::with_table(self.key, |state| state.plan.after_full_search(cost, now));
            }
            if let Some(key) = done.tally.first_locked {
                let expiry = key.saturating_add(lane.offset);
                self.oldest_locked = Some(self.oldest_locked.map_or(expiry, |old| old.min(expiry)));
            }
            let reached = done.tally.last.and_then(|row| row.key);
            let stuck = lane.access != Access::Ordered || reached == Some(low);
            if let Some(key) = reached {
                self.progress.low[lane.number] = key;
            }
            if done.tally.found < u64::from(limit) {
                self.cutoffs[lane.number] = now;
                return Ok(Step::Finished);
            }
            // Without an order, or within rows of one key, the next batch would
            // pass those again that this one has deleted.
            if stuck && done.tally.deleted == 0 && self.progress.swept {
                // All that is left here is locked.
                self.cutoffs[lane.number] = now;
                return Ok(Step::Finished);
            }
            let many = self.progress.pass_rows >= MANY;
            let decide = many && !self.progress.estimated;
            if (stuck && (many || done.tally.deleted == 0))
                || (decide && self.estimate()? == Way::Backlog)
            {
                self.begin_blocks()?;
                return Ok(Step::Finished);
            }
        }
    }

    fn estimate(&mut self) -> Result<Way, Failure> {
        self.progress.estimated = true;
        let estimate = probe::estimate(&self.job)?;
        let backlog = i64::try_from(estimate.expired).unwrap_or(i64::MAX);
        shared::with_table(self.key, |state| state.counters.backlog = backlog);
        Ok(estimate.way())
    }

    /// Starts a sweep in heap order.
    fn begin_blocks(&mut self) -> Result<(), Failure> {
        let estimate = probe::estimate(&self.job)?;
        self.progress.swept = true;
        self.progress.estimated = true;
        self.progress.next_block = 0;
        self.progress.next_offset = 0;
        self.progress.end_block = i64::from(estimate.blocks);
        let backlog = i64::try_from(estimate.expired).unwrap_or(i64::MAX);
        shared::with_table(self.key, |state| state.counters.backlog = backlog);
        Ok(())
    }

    /// Deletes in heap order, from where it stopped.
    fn backlog(&mut self) -> Result<Step, Failure> {
        while self.progress.next_block < self.progress.end_block {
            if self.is_over() {
                return Ok(Step::Pause);
            }
            let limit = self.progress.batch;
            // Enough blocks for a batch where every row is expired, or in which
            // there is little to delete: a bound for the time of one query.
            let from = self.progress.next_block;
            let to = (from + self.progress.blocks.max(16)).min(self.progress.end_block);
            let query = self.job.blocks(
                from,
                self.progress.next_offset,
                to,
                &self.aside.exclusion(),
                limit,
            );
            let Some(done) = self.batch(&query, limit, None)? else {
                continue;
            };
            match done.tally.last {
                Some(last) if done.tally.found >= u64::from(limit) => {
                    self.progress.next_block = i64::from(last.block);
                    self.progress.next_offset = last.offset;
                }
                _ => {
                    self.progress.next_block = to;
                    self.progress.next_offset = 0;
                    self.progress.blocks = i64::from(batch_size::after_success(
                        u32::try_from((to - from).max(16)).unwrap_or(u32::MAX),
                        1,
                        done.took,
                        1 << 20,
                    ));
                }
            }
        }
        self.progress.next_block = -1;
        self.progress.low = [i64::MIN; 2];
        Ok(Step::Finished)
    }

    /// One batch and the pause after it; `None` if it failed and is to be tried
    /// again, smaller or without the row that cannot be deleted.
    fn batch(
        &mut self,
        query: &str,
        limit: u32,
        lane: Option<&Lane>,
    ) -> Result<Option<Done>, Failure> {
        shared::with_table(self.key, |state| state.progress.batch = limit);
        match batch::run(&self.job, query, limit) {
            Ok(done) => {
                self.count(&done, lane);
                let rows = done.touched.max(done.tally.found);
                self.progress.batch =
                    batch_size::after_success(limit, rows, done.took, settings::batch_size());
                let now = background::now();
                for &row in &done.kept {
                    let error = Failure::new(
                        pgrx::PgSqlErrorCode::ERRCODE_TRIGGERED_ACTION_EXCEPTION,
                        format!("a trigger or rule on {} keeps expired rows", self.job.name),
                    );
                    self.set_aside(row, lane, &error, now)?;
                }
                self.pace.settle(rows, done.took, self.lag(now))?;
                Ok(Some(done))
            }
            Err(Trouble::Table(failure)) => Err(failure),
            Err(Trouble::Row(failure, row)) => {
                let now = background::now();
                let row = match row {
                    Some(row) => Some(row),
                    None => match batch_size::after_failure(limit) {
                        Some(smaller) => {
                            self.progress.batch = smaller;
                            None
                        }
                        None => probe::first_row(&self.job, query)?,
                    },
                };
                if let Some(row) = row {
                    self.set_aside(row, lane, &failure, now)?;
                }
                self.pace
                    .settle(1, Duration::from_millis(5), Duration::ZERO)?;
                if self.is_over() {
                    // Back to the loop, which ends the turn.
                    self.rows = self.rows.max(ROWS);
                }
                Ok(None)
            }
        }
    }

    fn set_aside(
        &mut self,
        row: Found,
        lane: Option<&Lane>,
        failure: &Failure,
        now: i64,
    ) -> Result<(), Failure> {
        note_failure(self.key, failure, now);
        let expiry = row
            .key
            .zip(lane)
            .map(|(key, lane)| key.saturating_add(lane.offset));
        if !blocked::set_aside(self.key, row, expiry, now) {
            return Err(failure.clone().because("too many rows are blocked"));
        }
        self.aside = blocked::of(self.key, now);
        let count = self.aside.count;
        shared::with_table(self.key, |state| state.counters.blocked_rows = count);
        Ok(())
    }

    fn count(&mut self, done: &Done, lane: Option<&Lane>) {
        self.rows += done.tally.found;
        self.progress.pass_rows += done.tally.deleted;
        self.locked += done.tally.locked;
        self.by_sql |= done.by_sql;
        let deleted = i64::try_from(done.tally.deleted).unwrap_or(0);
        let reached = lane.and_then(|lane| Some(done.tally.last?.key?.saturating_add(lane.offset)));
        let progress = self.progress;
        shared::with_table(self.key, |state| {
            state.progress = progress;
            state.counters.batches += 1;
            state.counters.rows_deleted += deleted;
            state.counters.backlog = (state.counters.backlog - deleted).max(0);
            if let Some(expiry) = reached {
                state.counters.oldest_expiry = expiry;
            }
        });
    }

    /// How far deletion in this table is behind.
    fn lag(&self, now: i64) -> Duration {
        let oldest = shared::with_table(self.key, |state| state.counters.oldest_expiry);
        let oldest = oldest.filter(|&expiry| expiry != 0).unwrap_or(now);
        Duration::from_micros(u64::try_from(now.saturating_sub(oldest)).unwrap_or(0))
    }

    /// A pass is over: nothing is left but what is locked or set aside.
    fn finish(&mut self) -> Result<Outcome, Failure> {
        blocked::forget_tried(self.key, self.progress.pass_began);
        let now = background::now();
        self.aside = blocked::of(self.key, now);
        let next = probe::next_expiry(&self.job, &self.cutoffs)?;
        if self.by_sql && self.locked == 0 {
            // Rows that a SELECT ... SKIP LOCKED has not even shown.
            if let Some(expiry) = probe::left_behind(&self.job, &self.cutoffs, &self.aside)? {
                self.locked = 1;
                self.oldest_locked = Some(expiry);
            }
        }
        let took = now - self.progress.pass_began;
        let oldest = [self.oldest_locked, self.aside.oldest, next]
            .into_iter()
            .flatten()
            .min();
        let (locked, aside) = (i64::try_from(self.locked).unwrap_or(0), self.aside.count);
        shared::with_table(self.key, |state| {
            state.progress.pass_began = 0;
            state.counters.passes += 1;
            state.counters.last_pass_at = now;
            state.counters.last_pass_ms = took as f64 / 1000.0;
            state.counters.oldest_expiry = oldest.unwrap_or(0);
            state.counters.backlog = locked + aside;
            state.counters.blocked_rows = aside;
            if aside > 0 {
                state.plan.search_again();
            }
        });
        let ordered = self
            .job
            .lanes
            .iter()
            .all(|lane| lane.access == Access::Ordered);
        let cost = i64::try_from(self.began.elapsed().as_micros()).unwrap_or(i64::MAX);
        let next_expiry = [next, self.aside.next].into_iter().flatten().min();
        Ok(Outcome::Done {
            next_expiry,
            leftover: self.locked > 0,
            interval: if ordered { 0 } else { schedule::interval(cost) },
        })
    }
}

//! A batch within a turn: its size, its failure, its counters and the pause after it; blocks that it cannot read.

use super::turn::{Step, Turn, micros, note_failure};
use crate::deletion::batch::{self, BatchFailure, BatchResult};
use crate::deletion::expiry_keys::{ExpiryKey, IndexPosition};
use crate::deletion::receiver::FoundRow;
use crate::deletion::set_aside::SetAside;
use crate::deletion::{batch_size, probe};
use crate::error::Error;
use crate::pg::server::{background, timeout};
use crate::settings;
use crate::worker::queue::fairness;
use crate::worker::shared::{blocked, state};
use pgrx::PgSqlErrorCode;
use std::time::{Duration, Instant};

/// Waits for others' transactions count this fraction of their time.
const CONTENTION: u32 = 10;

impl Turn<'_> {
    /// One batch and the pause after it; `None` if it failed and is to be tried again, smaller
    /// or without the row that cannot be deleted.
    pub(in crate::worker) fn batch(
        &mut self,
        query: &str,
        limit: u32,
        expiry_key: Option<&ExpiryKey>,
    ) -> Result<Option<BatchResult>, Error> {
        state::with_table(self.key, |state| {
            state.progress.batch = limit;
            state.single = None;
        });
        let key = self.key;
        let on_single = |row| {
            state::with_table(key, |state| state.single = Some(row));
        };
        let began = Instant::now();
        let result = batch::run(&self.job, query, limit, &on_single);
        if let Err(BatchFailure::Table(failure) | BatchFailure::Row(failure, _)) = &result
            && self.is_of_a_block(failure)?
        {
            return Ok(None);
        }
        match result {
            Ok(done) => self.after_success(done, limit, expiry_key).map(Some),
            // The referencing tables cannot be read, perhaps.
            Err(BatchFailure::Table(failure))
                if !failure.is_of_contention() && self.goes_without_referred() =>
            {
                Ok(None)
            }
            Err(BatchFailure::Table(failure)) => Err(failure),
            Err(BatchFailure::Row(failure, row)) => {
                let took = began.elapsed();
                let cost = match failure.is_of_contention() {
                    true => took / CONTENTION,
                    false => took,
                };
                self.count_futile(cost, limit == 1);
                self.after_failure(&failure, row, query, limit, expiry_key)?;
                self.pace
                    .settle(1, Duration::from_millis(5), Duration::ZERO)?;
                Ok(None)
            }
            Err(BatchFailure::Slow(failure)) => {
                self.after_timeout(&failure, query, limit, expiry_key)?;
                Err(failure)
            }
        }
    }

    /// Whether a block cannot be read that the batch was to read, which is set aside. On the way of an
    /// index, which may be any, the error is raised.
    fn is_of_a_block(&mut self, failure: &Error) -> Result<bool, Error> {
        if !failure.may_be_of_a_block() {
            return Ok(false);
        }
        match self.window {
            Some(blocks) => self.set_block_aside(blocks, failure),
            None => Err(failure.clone()),
        }
    }

    /// Larger batches fail on the way to a row that is set aside: after it others may go, so they
    /// alone are no reason to leave rows out.
    fn count_futile(&mut self, took: Duration, none_goes: bool) {
        if none_goes {
            self.futile += took;
        }
        self.progress.futile = self.progress.futile.saturating_add(micros(took));
    }

    fn after_success(
        &mut self,
        done: BatchResult,
        limit: u32,
        expiry_key: Option<&ExpiryKey>,
    ) -> Result<BatchResult, Error> {
        self.count(&done, expiry_key);
        if !done.kept.is_empty() && done.tally.deleted == 0 {
            self.count_futile(done.took, true);
        }
        let rows = done.touched.max(done.tally.found);
        if fairness::is_slow_batch(rows, done.took) && rows > 0 {
            state::with_table(self.key, |state| state.dawdled = true);
        }
        self.progress.batch = batch_size::after_success(
            limit,
            rows,
            done.took,
            settings::batch_size(),
            self.pace.share(),
        );
        let now = background::monotonic();
        for &row in &done.kept {
            let error = Error::new(
                PgSqlErrorCode::ERRCODE_TRIGGERED_ACTION_EXCEPTION,
                format!("a trigger or rule on {} keeps expired rows", self.job.name),
            );
            self.set_aside(row, expiry_key, &error, now);
        }
        // No more than the pass has taken: a table that was behind before is not falling behind.
        let working = now.saturating_sub(self.progress.pass_began);
        let working = Duration::from_micros(u64::try_from(working).unwrap_or(0));
        self.pace.settle(rows, done.took, self.lag().min(working))?;
        Ok(done)
    }

    /// Makes the next batch smaller, or sets the row aside that cannot be deleted.
    fn after_failure(
        &mut self,
        failure: &Error,
        row: Option<FoundRow>,
        query: &str,
        limit: u32,
        expiry_key: Option<&ExpiryKey>,
    ) -> Result<(), Error> {
        let smaller = batch_size::after_failure(limit);
        let row = match (row, smaller) {
            (None, None) => probe::first_row(&self.job, query)?,
            (row, _) => row,
        };
        let has_room = match row {
            Some(row) => self.set_aside(row, expiry_key, failure, background::monotonic()),
            None => false,
        };
        match (has_room, smaller, row) {
            // The others of the batch may go.
            (false, Some(smaller), _) => self.progress.batch = smaller,
            (false, None, Some(row)) => self.pass_over(row, expiry_key),
            _ => {}
        }
        Ok(())
    }

    /// Makes the next batch smaller. A single row that takes too long is set aside only if it
    /// had the full time limit; otherwise the next turn has more time.
    fn after_timeout(
        &mut self,
        failure: &Error,
        query: &str,
        limit: u32,
        expiry_key: Option<&ExpiryKey>,
    ) -> Result<(), Error> {
        match batch_size::after_timeout(limit) {
            Some(smaller) => self.progress.batch = smaller,
            None if timeout::TimedTurn::is_limited(settings::statement_timeout()) => {}
            None => return self.after_failure(failure, None, query, limit, expiry_key),
        }
        Ok(())
    }

    /// Whether there is room to set the row aside.
    pub(in crate::worker) fn set_aside(
        &mut self,
        row: FoundRow,
        expiry_key: Option<&ExpiryKey>,
        failure: &Error,
        now: i64,
    ) -> bool {
        note_failure(self.key, failure);
        let expiry = row
            .key
            .zip(expiry_key)
            .map(|(key, expiry_key)| key.saturating_add(expiry_key.offset));
        if self.is_referred_to(row, failure) {
            return true;
        }
        let referred = std::mem::take(&mut self.aside.referred);
        let has_room = blocked::set_aside(self.key, row, expiry, failure, now);
        if !has_room {
            self.leave(1, expiry);
        }
        self.aside = SetAside {
            referred,
            ..blocked::of(self.key, now)
        };
        let count = self.aside.count;
        state::with_table(self.key, |state| {
            state.counters.blocked_rows = count + state.referred;
        });
        has_room
    }

    /// Continues after the row, the first of what is left.
    fn pass_over(&mut self, row: FoundRow, expiry_key: Option<&ExpiryKey>) {
        match expiry_key {
            Some(expiry_key) => {
                let position = row.key.map(|key| IndexPosition::after(key, row.tid()));
                if let Some(position) = position {
                    self.progress.set_position(expiry_key.number, position);
                }
            }
            None => {
                self.progress.next_block = i64::from(row.block);
                self.progress.next_offset = row.offset;
            }
        }
    }

    /// Counts expired rows that this pass leaves behind.
    fn leave(&mut self, rows: u64, expiry: Option<i64>) {
        let progress = &mut self.progress;
        progress.locked += rows;
        if let Some(expiry) = expiry
            && (progress.oldest_locked == 0 || expiry < progress.oldest_locked)
        {
            progress.oldest_locked = expiry;
        }
    }

    fn count(&mut self, done: &BatchResult, expiry_key: Option<&ExpiryKey>) {
        self.rows += done.tally.found;
        self.progress.pass_rows += done.tally.deleted;
        let expiry = done.tally.first_locked.zip(expiry_key);
        let expiry = expiry.map(|(key, expiry_key)| key.saturating_add(expiry_key.offset));
        self.leave(done.tally.locked, expiry);
        let deleted = i64::try_from(done.tally.deleted).unwrap_or(0);
        let reached = expiry_key
            .and_then(|expiry_key| Some(done.tally.last?.key?.saturating_add(expiry_key.offset)));
        let (progress, file) = (self.progress, self.job.file);
        state::with_table(self.key, |state| {
            state.progress = progress;
            state.single = None;
            if deleted > 0 {
                state.emptiness.found_expired(file);
            }
            state.counters.batches += i64::from(done.tally.deleted > 0);
            state.counters.rows_deleted += deleted;
            state.counters.backlog = (state.counters.backlog - deleted).max(0);
            if let Some(expiry) = reached {
                state.counters.oldest_expiry = expiry;
            }
        });
    }

    /// By how much deletion in this table is behind.
    fn lag(&self) -> Duration {
        let now = background::now();
        let oldest = state::with_table(self.key, |state| state.counters.oldest_expiry);
        let oldest = oldest.filter(|&expiry| expiry != 0).unwrap_or(now);
        Duration::from_micros(u64::try_from(now.saturating_sub(oldest)).unwrap_or(0))
    }
}

/// Blocks that cannot be read are left alone, so that what is in others is deleted (S5 of the
/// issues' cases). An index leads to rows, and so into such a block again and again: the table is
/// read block by block instead, until none of its blocks is set aside.
impl Turn<'_> {
    /// From now on reads the table block by block.
    pub(in crate::worker) fn bypass_indexes(&mut self) {
        self.job.read_all();
        self.bypasses_indexes = true;
        self.progress.summarizes = false;
    }

    /// After an error in these blocks that may be one's: sets that block aside. False if all can be
    /// read, so that the error has another cause.
    pub(in crate::worker) fn set_block_aside(
        &mut self,
        blocks: (u32, u32),
        failure: &Error,
    ) -> Result<bool, Error> {
        let Some(block) = probe::unreadable(&self.job, blocks)? else {
            return Ok(false);
        };
        let failure = Error {
            message: format!(
                "block {block} of {} cannot be read, and is left out: {}",
                self.job.name, failure.message
            ),
            ..failure.clone()
        };
        let row = blocked::whole_block(block);
        self.set_aside(row, None, &failure, background::monotonic());
        if !self.aside.blocks.contains(&block) {
            // There was no room: for this turn at least.
            self.aside.blocks.push(block);
        }
        Ok(true)
    }

    /// After an error on the way of an index, which may be a block's: reads the whole table, once in a
    /// pass.
    pub(in crate::worker) fn without_indexes(&mut self, failure: &Error) -> Result<Step, Error> {
        self.bypass_indexes();
        if self.progress.sweep_began != 0 {
            // What the index leads to has been read, but for what has expired since.
            if self.aside.count == 0 {
                note_failure(self.key, failure);
            }
            return Ok(Step::Finished);
        }
        self.begin_heap_sweep()?;
        Ok(Step::Pause)
    }
}

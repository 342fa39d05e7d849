//! The two orders in which a table is swept: an index's, and the heap's.

pub(in crate::worker) mod attempt;
pub(in crate::worker) mod drop_partition;
pub(in crate::worker) mod pace;
pub(in crate::worker) mod pass_end;
pub(in crate::worker) mod ranges;
pub(in crate::worker) mod referred_rows;
pub(in crate::worker) mod turn;
pub(in crate::worker) mod without_deletion;

use self::turn::{Step, Turn};
use crate::deletion::batch_size;
use crate::deletion::expiry_keys::{ExpiryKey, IndexPosition};
use crate::deletion::probe;
use crate::deletion::receiver::FoundRow;
use crate::error::Error;
use crate::pg::server::background;
use crate::settings;
use crate::worker::queue::schedule;
use crate::worker::shared::worker_report::{self, Phase};
use crate::worker::shared::{builds, state, wakeups};
use std::time::Duration;

/// After this number of rows of a pass, the other order may be better: what decides costs as much as some 1,000 rows.
pub(super) const MANY: u64 = 3_000;

/// How long rows may have been expired, in microseconds, before they are announced: a
/// transaction may commit after its rows have expired. [`crate::worker::shared::wakeups::LONG_TRANSACTION`] is
/// less.
pub(super) const SLACK: i64 = 10_000_000;

impl Turn<'_> {
    /// Continues where the last turn stopped.
    pub(super) fn steps(&mut self) -> Result<Step, Error> {
        let scans = self.job.reads_all();
        if self.progress.next_block < 0 {
            if let Step::Pause = self.sweep_indexes()? {
                return Ok(Step::Pause);
            }
            if scans && self.progress.next_block < 0 {
                self.begin_heap_sweep()?;
            }
        }
        if self.progress.next_block >= 0 {
            if let Step::Pause = self.sweep_heap()? {
                return Ok(Step::Pause);
            }
            if scans && self.progress.reads_whole {
                self.end_of_reading();
            }
            // The indexes find what has expired behind the sweep.
            if !scans {
                return Ok(Step::Pause);
            }
        }
        Ok(Step::Finished)
    }

    /// Sweeps one index after the other, until each has come to its end since the last turn that
    /// stopped at one. A search can be slow, so one turn may not have time for all.
    fn sweep_indexes(&mut self) -> Result<Step, Error> {
        let expiry_keys = self.job.expiry_keys.clone();
        let count = expiry_keys.len();
        let mut at = usize::from(self.progress.first_expiry_key) % count.max(1);
        let mut done = usize::from(self.progress.expiry_keys_done).min(count);
        for expiry_key in expiry_keys
            .iter()
            .cycle()
            .skip(at + count - done)
            .take(done)
        {
            // Searched in an earlier turn: up to that time, not until now.
            self.cutoffs[expiry_key.number] = self
                .progress
                .position(expiry_key.number)
                .key
                .saturating_add(expiry_key.offset);
        }
        while done < count {
            let expiry_key = &expiry_keys[at];
            // An index for which no time is left is the first in the next turn.
            let worked = !self.is_over();
            let step = match expiry_key.is_ordered {
                true => self.sweep_index(expiry_key)?,
                false => Step::Finished,
            };
            if let Step::Pause = step {
                // M9: the next turn begins after the index at which this one stopped.
                if worked {
                    (at, done) = ((at + 1) % count, 0);
                }
                self.progress.first_expiry_key = u16::try_from(at).unwrap_or(0);
                self.progress.expiry_keys_done = u16::try_from(done).unwrap_or(0);
                return Ok(Step::Pause);
            }
            if self.progress.next_block >= 0 {
                break;
            }
            (at, done) = ((at + 1) % count, done + 1);
        }
        self.progress.expiry_keys_done = 0;
        Ok(Step::Finished)
    }

    /// Deletes in the order of an index, from where it stopped.
    fn sweep_index(&mut self, expiry_key: &ExpiryKey) -> Result<Step, Error> {
        worker_report::phase(Phase::SweepingIndex);
        loop {
            if self.is_over() {
                return Ok(Step::Pause);
            }
            let now = background::now();
            let limit = self.progress.batch.min(settings::batch_size());
            let from = self.progress.position(expiry_key.number);
            let query = self
                .job
                .index_sweep(expiry_key, from, now, &self.aside.exclusion(), limit);
            let done = self.batch(&query, limit, Some(expiry_key))?;
            if self.is_futile() {
                let top = now.saturating_sub(expiry_key.offset);
                self.progress.leave_out(expiry_key.number, top, SLACK);
                self.futile = Duration::ZERO;
                continue;
            }
            let Some(done) = done else {
                continue;
            };
            let cost = i64::try_from(done.took.as_micros()).unwrap_or(i64::MAX);
            if std::mem::take(&mut self.progress.full_search) {
                let now = background::monotonic();
                state::with_table(self.key, |state| {
                    let pause = schedule::interval(cost);
                    state.schedule.after_full_search(pause, now)
                });
            } else if from == IndexPosition::BEGINNING {
                state::with_table(self.key, |state| state.schedule.after_further_search(cost));
            }
            if done.tally.found < u64::from(limit) {
                self.cutoffs[expiry_key.number] = now;
                let done = now.saturating_sub(expiry_key.offset + SLACK);
                self.progress
                    .set_position(expiry_key.number, IndexPosition::at(done));
                return Ok(Step::Finished);
            }
            if let Some(last) = done.tally.last {
                self.advance(expiry_key, from, last, done.tally.deleted == 0);
            }
            let many = self.progress.pass_rows >= MANY;
            if many && !self.progress.estimated && self.estimate()? {
                self.begin_heap_sweep()?;
                return Ok(Step::Finished);
            }
        }
    }

    /// Notes how far a full batch has come. If it has deleted nothing, as all are locked, the next one comes after them.
    fn advance(
        &mut self,
        expiry_key: &ExpiryKey,
        from: IndexPosition,
        last: FoundRow,
        none_deleted: bool,
    ) {
        let position = match last.key {
            Some(key) if none_deleted => IndexPosition::after(key, last.tid()),
            Some(key) if key != from.key => IndexPosition::at(key),
            _ => from,
        };
        self.progress.set_position(expiry_key.number, position);
    }

    /// Estimates how many rows are expired; whether they are to be deleted in heap order.
    pub(super) fn estimate(&mut self) -> Result<bool, Error> {
        self.progress.estimated = true;
        let estimate = probe::estimate(&self.job)?;
        let backlog = i64::try_from(estimate.expired).unwrap_or(i64::MAX);
        self.note_backlog(backlog);
        Ok(batch_size::is_for_heap(
            estimate.expired,
            estimate.blocks.into(),
        ))
    }

    /// Notes an estimate of how many rows are expired.
    fn note_backlog(&self, backlog: i64) {
        state::with_table(self.key, |state| {
            state.is_seen = true;
            state.counters.backlog = backlog;
        });
    }

    pub(super) fn begin_heap_sweep(&mut self) -> Result<(), Error> {
        let blocks = probe::blocks(&self.job)?;
        self.note_size(blocks)?;
        self.progress.sweep_began = background::now();
        let is_estimated = std::mem::replace(&mut self.progress.estimated, true);
        self.progress.next_block = 0;
        self.progress.next_offset = 0;
        self.progress.end_block = i64::from(blocks);
        self.begin_ranges(blocks);
        if !self.progress.reads_whole {
            return Ok(());
        }
        if is_estimated || probe::is_sampled_whole(blocks) {
            // The sweep reads no more than an estimate would.
            return Ok(());
        }
        match probe::estimate(&self.job) {
            // The sweep finds out which.
            Err(failure) if failure.may_be_of_a_block() => {}
            estimate => {
                let backlog = i64::try_from(estimate?.expired).unwrap_or(i64::MAX);
                self.note_backlog(backlog);
            }
        }
        Ok(())
    }

    /// Notes how much is read for lack of an index: the builder may be called for.
    fn note_size(&self, blocks: u32) -> Result<(), Error> {
        let size = match self.reads_ranges() {
            true => probe::size_for_builder(&self.job, blocks)?,
            false => 0,
        };
        if builds::note_size(self.key, size) {
            wakeups::tell_of_change(self.key.database);
        }
        Ok(())
    }

    /// Deletes in heap order, from where it stopped.
    fn sweep_heap(&mut self) -> Result<Step, Error> {
        worker_report::phase(Phase::SweepingHeap);
        while let Some((from, end)) = self.next_blocks() {
            if self.is_over() {
                return Ok(Step::Pause);
            }
            let Some((block, offset)) = self.window(from, end)? else {
                continue;
            };
            self.progress.next_block = block;
            self.progress.next_offset = offset;
            if block >= end && self.reads_ranges() {
                self.summarize(end)?;
            }
        }
        self.progress.next_block = -1;
        // All rows that were expired at its begin are done, except those that were locked or
        // came with an old `_ts`: a search from the beginning finds them.
        for expiry_key in &self.job.expiry_keys {
            let done = self
                .progress
                .sweep_began
                .saturating_sub(expiry_key.offset + SLACK);
            if self.progress.position(expiry_key.number).key < done {
                self.progress
                    .set_position(expiry_key.number, IndexPosition::at(done));
            }
        }
        Ok(Step::Finished)
    }

    /// Deletes what is expired in the next blocks before `end`; returns the block and the offset after which rows are left,
    /// `None` if that failed and is to be tried again.
    pub(super) fn window(
        &mut self,
        (from, offset): (i64, u16),
        end: i64,
    ) -> Result<Option<(i64, u16)>, Error> {
        let limit = self.progress.batch.min(settings::batch_size());
        // Enough blocks for a batch if every row is expired; but no more than one query can
        // read in its time if few are.
        let to = (from + self.progress.blocks.max(16)).min(end);
        let to = match self.aside.first_block(from, to) {
            Some(block) if block == from => {
                return Ok(Some((from + 1, 0)));
            }
            first => first.unwrap_or(to),
        };
        let query = self
            .job
            .heap_sweep(from, offset, to, &self.aside.exclusion(), limit);
        let block = |number| u32::try_from(number).unwrap_or(u32::MAX);
        self.window = Some((block(from), block(to)));
        let done = self.batch(&query, limit, None);
        self.window = None;
        let Some(done) = done? else {
            return Ok(None);
        };
        Ok(Some(match done.tally.last {
            Some(last) if done.tally.found >= u64::from(limit) => {
                (i64::from(last.block), last.offset)
            }
            _ => {
                self.progress.blocks = i64::from(batch_size::after_success(
                    u32::try_from((to - from).max(16)).unwrap_or(u32::MAX),
                    1,
                    done.took,
                    1 << 20,
                    self.pace.share(),
                ));
                (to, 0)
            }
        }))
    }
}

//! Reading a table that has no index: which ranges of its blocks are due, and when they are due again
//! (`docs/decisions/0094-no-index-where-none-is-needed.md`).

use super::SLACK;
use super::turn::{Turn, micros};
use crate::deletion::probe;
use crate::error::Error;
use crate::pg::server::background;
use crate::worker::queue::schedule;
use crate::worker::queue::summary::NARROWEST;
use crate::worker::shared::state;
use std::time::Instant;

/// A table of up to this number of blocks is read whole in each pass.
const LITTLE: u32 = 8 * NARROWEST;

impl Turn<'_> {
    /// Whether the table is read for lack of an index, range by range.
    pub(super) fn reads_ranges(&self) -> bool {
        self.job.reads_all() && !self.bypasses_indexes
    }

    /// Decides whether the sweep reads only the ranges that are due.
    pub(super) fn begin_ranges(&mut self, blocks: u32) {
        let reads_ranges = self.reads_ranges();
        let is_complete = self.is_complete(background::now());
        let progress = &mut self.progress;
        progress.summary.fit(blocks);
        let by_ranges = reads_ranges && progress.partial && blocks > LITTLE && is_complete;
        progress.reads_whole = !by_ranges;
        progress.summarizes = reads_ranges && progress.reads_whole;
        if progress.summarizes {
            progress.summary.begin_anew();
        }
    }

    /// The next blocks of the heap sweep: after which row of which block, and to before which one; `None` at its end.
    pub(super) fn next_blocks(&mut self) -> Option<((i64, u16), i64)> {
        let reads_ranges = self.reads_ranges();
        let progress = &mut self.progress;
        let block = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
        if !progress.reads_whole && progress.next_offset == 0 {
            let (next, end) = (block(progress.next_block), block(progress.end_block));
            let next = progress.summary.next_due(next, end, background::now());
            progress.next_block = i64::from(next);
        }
        if progress.next_block >= progress.end_block {
            return None;
        }
        let from = (progress.next_block, progress.next_offset);
        let end = match reads_ranges {
            true => i64::from(progress.summary.end_of(block(from.0))).min(progress.end_block),
            false => progress.end_block,
        };
        Some((from, end))
    }

    /// Notes when the range that ends there is to be read again.
    pub(super) fn summarize(&mut self, end: i64) -> Result<(), Error> {
        let end = u32::try_from(end).unwrap_or(u32::MAX);
        let range = (self.progress.summary.begin_of(end.saturating_sub(1)), end);
        let began = Instant::now();
        let first = match probe::first_read(&self.job, range) {
            Err(failure) if failure.may_be_of_a_block() => {
                self.progress.summary.forget(range.0);
                return Ok(());
            }
            first => first?,
        };
        let summary = &mut self.progress.summary;
        if let Some(seconds) = first.least_override {
            summary.note_override(seconds);
        }
        summary.note(range.0, first.expiry);
        // Of rows that the pass leaves, the range tells.
        let later = first
            .expiry
            .filter(|&expiry| expiry > self.progress.sweep_began);
        self.progress.first_read = self.progress.first_read.min(later.unwrap_or(i64::MAX));
        self.progress.reading += micros(began.elapsed());
        self.progress.read_blocks = self.progress.read_blocks.saturating_add(range.1 - range.0);
        Ok(())
    }

    /// The whole table has been read, for lack of an index.
    pub(super) fn end_of_reading(&mut self) {
        let progress = &mut self.progress;
        if progress.summarizes {
            // A row that this has not seen was written later, or by a transaction that was going on.
            let later = progress.sweep_began.saturating_sub(SLACK);
            progress.summary.complete(later);
        }
        let pause = self.pause_of_reading(schedule::VERY_LATE);
        let now = background::monotonic();
        state::with_table(self.key, |state| {
            state.schedule.after_full_search(pause, now)
        });
    }

    /// Whether the ranges that are due by then are all that is to be read.
    fn is_complete(&self, then: i64) -> bool {
        let summary = &self.progress.summary;
        summary.is_complete(then, self.job.soonest(summary.least_override()))
    }

    /// How long what the pass has read is not read again, unless that is more than `late`.
    fn pause_of_reading(&self, late: i64) -> i64 {
        // The sweep reads it, too.
        let cost = self.progress.reading.saturating_mul(2);
        schedule::interval_of_reading(cost, self.progress.read_blocks.into(), late)
    }

    /// How long to wait before the next pass.
    pub(super) fn pause_before_ranges(&self) -> i64 {
        let pause = self.pause_of_reading(schedule::LATE);
        let then = background::now().saturating_add(pause);
        let end = u32::try_from(self.progress.end_block).unwrap_or(u32::MAX);
        let summary = &self.progress.summary;
        if self.progress.reads_whole && end > LITTLE && self.is_complete(then) {
            // That pass reads less.
            (pause as f64 * summary.part_due(then, end)) as i64
        } else {
            pause
        }
    }
}

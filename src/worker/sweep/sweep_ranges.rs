//! The sweep by the ranges of blocks that a BRIN index leads to
//! (`docs/decisions/0053-brin-by-ranges.md`).

use super::turn::{Step, Turn, micros};
use super::{MANY, SLACK};
use crate::deletion::expiry_keys::ExpiryKey;
use crate::deletion::ranges;
use crate::error::Error;
use crate::pg::exec::brin::Led;
use crate::pg::server::background;
use crate::worker::queue::vain::Vain;
use crate::worker::shared::report::{self, Phase};
use crate::worker::shared::{log, state};
use pgrx::{PgSqlErrorCode, pg_sys};
use std::time::{Duration, Instant};

/// Ranges are summarised together, of so many blocks that a turn has time for them at its end.
const TOGETHER: u64 = 2048;
/// The pause after summaries that were made anew, and still lead to nothing; doubled each time,
const FIRST_PAUSE: i64 = 60_000_000;
/// up to this one.
const LONGEST_PAUSE: i64 = 3_600_000_000;

/// The expiry key of a sweep, its index, and its search.
struct Search<'a> {
    expiry_key: &'a ExpiryKey,
    index: pg_sys::Oid,
    /// The keys that are searched.
    keys: (i64, i64),
}

impl Search<'_> {
    /// Whether it is from the very beginning.
    fn is_full(&self) -> bool {
        self.keys.0 == i64::MIN
    }
}

impl Turn<'_> {
    /// Deletes in the blocks to which the index leads, from where the last turn stopped.
    pub(in crate::worker) fn sweep_ranges(
        &mut self,
        expiry_key: &ExpiryKey,
        index: pg_sys::Oid,
    ) -> Result<Step, Error> {
        if self.is_over() {
            return Ok(Step::Pause);
        }
        report::phase(Phase::SweepingIndex);
        let number = expiry_key.number;
        let now = background::now();
        if self.progress.range_sweep(number).is_recent(now) {
            let low = self.progress.low(number);
            self.cutoffs[number] = low.saturating_add(expiry_key.offset);
            return Ok(Step::Finished);
        }
        self.progress.with_range_sweep(number, |sweep| {
            if sweep.began == 0 {
                sweep.began = now;
            }
        });
        let began = self.progress.range_sweep(number).began;
        let search = Search {
            expiry_key,
            index,
            keys: (
                self.progress.low(number),
                began.saturating_sub(expiry_key.offset),
            ),
        };
        let looking = Instant::now();
        let led = self.lead(&search)?;
        self.read_in_vain(number, looking.elapsed());
        self.in_ranges_of = Some(number);
        let mut renewed = Vec::new();
        let step = self.sweep_blocks(&search, &led, &mut renewed);
        self.in_ranges_of = None;
        if !renewed.is_empty() {
            self.check_summaries(&search, &renewed)?;
        }
        if let Step::Pause = step? {
            return Ok(Step::Pause);
        }
        self.end_search(&search, began);
        Ok(Step::Finished)
    }

    fn lead(&self, search: &Search<'_>) -> Result<Led, Error> {
        let led = ranges::lead(&self.job, search.index, search.keys)?;
        // What is wrong passes: the next turn looks for the indexes again.
        led.ok_or_else(|| {
            Error::new(
                PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE,
                format!("could not obtain lock on an index of {}", self.job.name),
            )
        })
    }

    fn sweep_blocks(
        &mut self,
        search: &Search<'_>,
        led: &Led,
        renewed: &mut Vec<u32>,
    ) -> Result<Step, Error> {
        let number = search.expiry_key.number;
        let mut vain = Vain::new(led.range, led.table);
        let mut idle = Vec::new();
        for blocks in &led.to {
            loop {
                let sweep = self.progress.range_sweep(number);
                let (from, offset) = (sweep.block, sweep.offset).max((blocks.from, 0));
                if from >= blocks.to {
                    break;
                }
                if self.is_over() {
                    self.summarise(search, led, &mut idle, renewed);
                    return Ok(Step::Pause);
                }
                let Some(left) = self.window((i64::from(from), offset), i64::from(blocks.to))?
                else {
                    continue;
                };
                let to = u32::try_from(left.block).unwrap_or(u32::MAX);
                self.progress.with_range_sweep(number, |sweep| {
                    (sweep.block, sweep.offset) = (to, left.offset);
                });
                if !left.found {
                    self.read_in_vain(number, left.took);
                }
                idle.extend(vain.read(from, to, left.found));
                if idle.len() as u64 * u64::from(led.range) >= TOGETHER {
                    self.summarise(search, led, &mut idle, renewed);
                }
                if self.progress.pass_rows >= MANY && !self.progress.estimated {
                    self.estimate()?;
                }
            }
        }
        self.summarise(search, led, &mut idle, renewed);
        Ok(Step::Finished)
    }

    fn read_in_vain(&mut self, number: usize, took: Duration) {
        self.vain += took;
        self.progress
            .with_range_sweep(number, |sweep| sweep.vain += micros(took));
    }

    /// Summarises ranges to which the index led without a row being expired: those that are not summarised, and in a
    /// search from the very beginning all, as rows that are gone leave their mark in a summary.
    ///
    /// It helps, but deletion does without: an error is logged, and it is left for a while.
    fn summarise(
        &mut self,
        search: &Search<'_>,
        led: &Led,
        idle: &mut Vec<u32>,
        renewed: &mut Vec<u32>,
    ) {
        let number = search.expiry_key.number;
        let sweep = self.progress.range_sweep(number);
        let anew = search.is_full();
        let ranges: Vec<u32> = idle
            .drain(..)
            .filter(|&range| anew || range >= sweep.summarised)
            .collect();
        let now = background::now();
        if now < sweep.not_before {
            return;
        }
        let mut rest = &ranges[..];
        while !rest.is_empty() {
            let done = match ranges::summarise(&self.job, search.index, rest, anew) {
                Ok(0) => return,
                Ok(done) => done,
                Err(failure) => {
                    let not_before = now.saturating_add(LONGEST_PAUSE);
                    self.progress
                        .with_range_sweep(number, |sweep| sweep.not_before = not_before);
                    self.say_not_summarised(&failure);
                    return;
                }
            };
            let (reached, left) = rest.split_at(done.min(rest.len()));
            let end = reached.last().map_or(0, |&it| it.saturating_add(led.range));
            self.progress.with_range_sweep(number, |sweep| {
                sweep.summarised = sweep.summarised.max(end);
            });
            if anew {
                renewed.extend(reached);
            }
            rest = left;
        }
    }

    fn say_not_summarised(&self, failure: &Error) {
        log::once(
            &format!("{} not summarised", self.key.relid),
            &format!(
                "could not summarize ranges of a BRIN index of table {}: {}",
                self.job.name,
                failure.text()
            ),
            "Deletion goes on, and reads more than it has to. It is tried again in an hour.",
        );
    }

    /// Where most summaries lead to nothing even though they are new (a transaction is older than
    /// the deletions; rows that the key does not tell apart), others are left for a while.
    fn check_summaries(&mut self, search: &Search<'_>, renewed: &[u32]) -> Result<(), Error> {
        let led = self.lead(search)?;
        let useless = renewed.iter().filter(|&&block| led.is_to(block)).count();
        let is_useless = useless * 2 > renewed.len();
        let now = background::now();
        self.progress
            .with_range_sweep(search.expiry_key.number, |sweep| {
                sweep.pause = if is_useless {
                    (sweep.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE)
                } else {
                    0
                };
                sweep.not_before = now.saturating_add(sweep.pause);
            });
        Ok(())
    }

    fn end_search(&mut self, search: &Search<'_>, began: i64) {
        let number = search.expiry_key.number;
        let vain = self.progress.range_sweep(number).vain;
        let now = background::now();
        if search.is_full() {
            let first = std::mem::take(&mut self.progress.full_search);
            state::with_table(self.key, |state| {
                if first {
                    state
                        .schedule
                        .after_full_search(vain, background::monotonic());
                } else {
                    state.schedule.after_further_search(vain);
                }
            });
        }
        self.progress.end_range_sweep(number, now);
        self.cutoffs[number] = began;
        let done = began.saturating_sub(search.expiry_key.offset + SLACK);
        self.progress.set_low(number, done);
    }
}

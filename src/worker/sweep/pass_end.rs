//! The end of a pass: what is left in the table, and when to look again.

use super::turn::{Turn, futile_pause, micros};
use super::without_deletion::scheduled;
use crate::deletion::probe;
use crate::error::Error;
use crate::pg::server::background;
use crate::worker::queue::schedule::{self, Outcome};
use crate::worker::shared::worker_report::{self, Phase};
use crate::worker::shared::{blocked, state};
use std::time::Instant;

/// When to look again if it cannot be read when the next row expires.
const HIDDEN: i64 = 5_000_000;

impl Turn<'_> {
    /// What comes next, and when the first row expired of those that the pass has left behind, unless it leaves none, as
    /// far as that is known of a table that is read.
    fn look_ahead(&self, leaves_none: bool) -> Result<(Option<i64>, Option<i64>), Error> {
        let mut next = probe::next_expiry(&self.job, &self.cutoffs)?;
        let mut oldest = None;
        if self.reads_ranges() {
            let summary = &self.progress.summary;
            let end = u32::try_from(self.progress.end_block).unwrap_or(u32::MAX);
            let first = summary.next_after(i64::MIN, end);
            let exact = Some(self.progress.first_read).filter(|&expiry| expiry != i64::MAX);
            // Rows that have come expired behind the sweep are among the next, unless those that it has left would be.
            let later = match leaves_none {
                true => first,
                false => {
                    oldest = first.filter(|&expiry| expiry <= background::now());
                    summary.next_after(self.progress.sweep_began, end)
                }
            };
            next = next.into_iter().chain(later).chain(exact).min();
        }
        Ok((next, oldest))
    }

    /// Whether a range could not be read.
    fn has_unread_range(&self) -> bool {
        let end = u32::try_from(self.progress.end_block).unwrap_or(u32::MAX);
        self.reads_ranges() && self.progress.summary.is_incomplete(end)
    }

    /// Forgets rows that were set aside and are gone since, or live: others have deleted or changed them. If that cannot be
    /// seen now, they count as before.
    fn forget_gone(&self) {
        let rows = blocked::rows_of(self.key);
        if rows.is_empty() {
            return;
        }
        if let Ok(there) = probe::still_expired(&self.job, &rows) {
            let gone: Vec<_> = rows
                .into_iter()
                .filter(|row| !there.contains(row))
                .collect();
            blocked::forget(self.key, &gone);
        }
    }

    /// Ends a pass: nothing is left but locked rows and those set aside.
    pub(in crate::worker) fn finish(&mut self) -> Result<Outcome, Error> {
        worker_report::phase(Phase::LookingAhead);
        let reads_all = self.job.reads_all();
        if !self.progress.partial || reads_all {
            blocked::forget_tried(self.key, self.progress.pass_began);
        }
        self.forget_gone();
        let now = background::monotonic();
        self.aside = blocked::of(self.key, now);
        let (referred, count_again) = self.count_referred();
        let (locked, aside) = (
            i64::try_from(self.progress.locked).unwrap_or(0),
            self.aside.count + referred.rows,
        );
        let left_out = self.progress.leaves_out();
        let probing = Instant::now();
        let leaves_none = locked == 0 && aside == 0 && !left_out;
        let ((next, oldest_left), hidden) = match self.look_ahead(leaves_none) {
            // What comes next is in a block that cannot be read, and others are behind it.
            Err(failure) if failure.may_be_of_a_block() => ((None, None), true),
            ahead => (ahead?, self.has_unread_range()),
        };
        let probed = micros(probing.elapsed());
        let took = now - self.progress.pass_began;
        let oldest_locked = Some(self.progress.oldest_locked).filter(|&expiry| expiry != 0);
        let oldest = [
            oldest_locked,
            self.aside.oldest,
            referred.oldest,
            oldest_left,
            next,
        ]
        .into_iter()
        .flatten()
        .min();
        let reads_ranges = self.reads_ranges();
        let has_come_to_all = match reads_ranges {
            true => leaves_none && self.job.expiry_keys.iter().all(|key| !key.is_ordered),
            false => !reads_all && self.progress.has_come_to_all(),
        };
        let writes_seen = match has_come_to_all && !hidden {
            // Of what was written since all was read, a range that was not due may have a row.
            true if reads_ranges && !self.progress.reads_whole => self.progress.writes_seen,
            true => self.progress.written,
            false => -1,
        };
        state::with_table(self.key, |state| {
            state.progress.writes_seen = writes_seen;
            state.progress.next_expiry = next.unwrap_or(0);
            state.progress.pass_began = 0;
            state.progress.futile = 0;
            state.is_seen = true;
            state.counters.passes += 1;
            state.counters.last_pass_at = background::now();
            state.counters.last_pass_ms = took as f64 / 1000.0;
            state.counters.oldest_expiry = oldest.unwrap_or(0);
            state.counters.backlog = locked + aside;
            state.counters.blocked_rows = aside;
        });
        let pause = futile_pause(self.progress.futile);
        let not_before = state::with_table(self.key, |state| {
            state
                .schedule
                .after_futile_search(now.saturating_add(pause))
        });
        let aside = self.aside.next.map(|at| at.max(not_before.unwrap_or(at)));
        let look_again = hidden.then(|| now.saturating_add(HIDDEN));
        let next_expiry = [next.map(scheduled), aside, look_again, count_again];
        let next_expiry = next_expiry.into_iter().flatten().min();
        Ok(Outcome::Done {
            next_expiry,
            leftover: locked > 0 || left_out,
            // The rows that one index led to are dead in the others, beyond what has expired by
            // those: a search for the next row reads past them.
            interval: if reads_ranges {
                self.pause_before_ranges()
            } else {
                schedule::interval(if self.bypasses_indexes {
                    took
                } else if reads_all {
                    micros(self.began.elapsed())
                } else {
                    probed
                })
            },
        })
    }
}

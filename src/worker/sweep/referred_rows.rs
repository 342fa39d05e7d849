//! Rows of a turn's table that live rows refer to: left out, and counted from time to time.

use super::turn::{Turn, micros};
use crate::deletion::receiver::FoundRow;
use crate::deletion::referred::{Count, Referred};
use crate::error::Error;
use crate::pg::server::background;
use crate::worker::shared::state;
use std::time::Instant;

/// They are counted at most so often, in microseconds, and for at most this fraction of the time.
const COUNT_EVERY: i64 = 60_000_000;
const SHARE: i64 = 100;

impl Turn<'_> {
    /// From now on leaves out what live rows refer to, if that can be determined. Otherwise each row is found
    /// when a batch fails because of it.
    pub(in crate::worker) fn leave_out_referred(&mut self) {
        if self.referred.is_none()
            && let Ok(Some(referred)) = Referred::of(&self.job)
        {
            self.job.named = referred.tables.clone();
            self.aside.referred = referred.exclusion();
            self.referred = Some(referred);
        }
    }

    /// A batch has failed because of this row: whether it is left out from now on, since a live row
    /// refers to it.
    pub(in crate::worker) fn is_referred_to(&mut self, row: FoundRow, failure: &Error) -> bool {
        if !failure.is_of_a_reference() {
            return false;
        }
        self.leave_out_referred();
        let referred = self.referred.as_ref();
        let is_one = referred.is_some_and(|all| all.has(&self.job, row).unwrap_or(false));
        if is_one {
            let aside = self.aside.count;
            state::with_table(self.key, |state| {
                // The others are counted at the end of the pass.
                state.referred = state.referred.max(1);
                state.counters.blocked_rows = aside + state.referred;
            });
        }
        is_one
    }

    /// The condition cannot be evaluated: what it is for goes without. False if there is none.
    pub(in crate::worker) fn goes_without_referred(&mut self) -> bool {
        let had = self.referred.take().is_some();
        if had {
            self.aside.referred.clear();
            self.job.named.clear();
            state::with_table(self.key, |state| {
                state.referred = 0;
                state.schedule.search_again();
            });
        }
        had
    }

    /// Counts them, if it is time. Returns the last count, and when to count again.
    pub(in crate::worker) fn count_referred(&self) -> (Count, Option<i64>) {
        let now = background::monotonic();
        let known = state::with_table(self.key, |state| {
            let is_known = |&since: &i64| since != 0 && state.referred > 0;
            let oldest = Some(state.referred_since).filter(is_known);
            let count = Count {
                rows: state.referred,
                oldest,
            };
            (count, state.count_again_at)
        });
        let (known, at) = known.unwrap_or_default();
        if known.rows == 0 {
            return (known, None);
        }
        let Some(referred) = self.referred.as_ref().filter(|_| at <= now) else {
            return (known, Some(at));
        };
        let began = Instant::now();
        // What cannot be counted now is counted later.
        let count = referred.count(&self.job, &self.cutoffs).unwrap_or(known);
        let pause = micros(began.elapsed())
            .saturating_mul(SHARE)
            .max(COUNT_EVERY);
        let at = now.saturating_add(pause);
        state::with_table(self.key, |state| {
            state.referred = count.rows;
            state.referred_since = count.oldest.unwrap_or(0);
            state.count_again_at = at;
        });
        (count, (count.rows > 0).then_some(at))
    }
}

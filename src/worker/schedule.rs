//! When a table is looked at next. Pure: instants and durations are given in
//! microseconds, as timestamptz has them.

use super::wakeups::Writes;

/// The shortest time between two looks at a table that ask for nothing else.
const MIN_GAP: i64 = 500_000;
/// The shortest time between two looks because of writes.
const WRITE_GAP: i64 = 1_000_000;
/// The pause after the first failure; it doubles with each further one.
const FIRST_PAUSE: i64 = 1_000_000;
/// A search from the very beginning of an index, past what is dead there, takes
/// at most one part in so many of the time.
const FULL_SEARCH_SHARE: i64 = 20;

/// A table's place in the schedule.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    /// When to look next.
    pub(super) due: i64,
    last_look: i64,
    /// Failures in a row.
    failures: u32,
    /// Looks in a row that left expired rows behind, which were locked or blocked.
    leftovers: u32,
    /// Whether the next look begins at the index's very beginning.
    full: bool,
    /// Not before this, because the last one was slow.
    full_after: i64,
    /// The last search from the very beginning.
    last_full: i64,
    /// Looks are expensive here: not before this.
    not_before: i64,
    /// The next look is only because a naptime will have passed.
    routine: bool,
    /// A turn is going on.
    in_turn: bool,
    /// What has come since it began. The turn may have looked before that, so that it does
    /// not count as seen when the turn ends.
    arrived: Arrived,
}

/// What has come while a turn was going on.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Arrived {
    /// When a look is needed for it; `i64::MAX` = not for it.
    due: i64,
    /// From the index's very beginning.
    full: bool,
    /// The policy has changed.
    changed: bool,
}

impl Arrived {
    const NOTHING: Self = Self {
        due: i64::MAX,
        full: false,
        changed: false,
    };
}

/// What a turn at a table has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// There is more to delete.
    Unfinished,
    /// Everything that could be deleted is.
    Done {
        /// When the next row expires, as far as is known.
        next_expiry: Option<i64>,
        /// Expired rows are left: locked, or set aside.
        leftover: bool,
        /// Looks are expensive here: not more often than this.
        interval: i64,
    },
    /// It could not be worked on.
    Failed,
}

/// `FIRST_PAUSE`, doubled for each further time, `naptime` at most.
fn pause(times: u32, naptime: i64) -> i64 {
    let doubled = FIRST_PAUSE.saturating_mul(1 << times.saturating_sub(1).min(30));
    doubled.min(naptime.max(FIRST_PAUSE))
}

impl Plan {
    /// For a table about which nothing is known: now, and from the beginning.
    pub(super) const fn new() -> Self {
        Self {
            due: i64::MIN,
            last_look: i64::MIN,
            failures: 0,
            leftovers: 0,
            full: true,
            full_after: i64::MIN,
            last_full: i64::MIN,
            not_before: i64::MIN,
            routine: false,
            in_turn: false,
            arrived: Arrived::NOTHING,
        }
    }

    /// A turn begins: what comes from now on is kept for the next one.
    pub(super) fn begin_turn(&mut self) {
        self.in_turn = true;
        self.arrived = Arrived::NOTHING;
    }

    /// The turn that is going on ends as if it had not begun.
    pub(super) fn abandon_turn(&mut self) {
        if !std::mem::take(&mut self.in_turn) {
            return;
        }
        let arrived = std::mem::replace(&mut self.arrived, Arrived::NOTHING);
        if arrived.changed {
            self.now();
        }
        self.full |= arrived.full;
        self.routine &= arrived.due == i64::MAX;
    }

    /// Whether this look is only because a naptime has passed: nothing is known
    /// to have expired or changed.
    pub(super) fn is_routine(&self) -> bool {
        self.routine
    }

    /// Somebody has written to the table. `shortest`: how soon the rows that a
    /// statement writes can expire.
    pub(super) fn after_writes(&mut self, writes: Writes, shortest: i64, now: i64) {
        let soonest = if writes.kept_ts { 0 } else { shortest };
        let due = now.saturating_add(soonest);
        if self.in_turn {
            self.arrived.full |= writes.kept_ts;
            self.arrived.due = self.arrived.due.min(due);
        } else {
            self.full |= writes.kept_ts;
            self.look_for_writes(due);
        }
    }

    /// Written to, so that a look is needed at this time, or as soon as may be after it.
    fn look_for_writes(&mut self, at: i64) {
        let due = self
            .last_look
            .saturating_add(WRITE_GAP)
            .max(at)
            .max(self.not_before);
        self.due = self.due.min(due);
        self.routine = false;
    }

    /// Whether this look begins at the very beginning of the index.
    pub(super) fn begins_full(&self, naptime: i64, now: i64) -> bool {
        // Once a naptime, too, whatever nobody has told about.
        let long_ago = now.saturating_sub(self.last_full) >= naptime;
        (self.full || long_ago) && now >= self.full_after
    }

    /// A search from the very beginning found its first row, or none, after `cost`.
    pub(super) fn after_full_search(&mut self, cost: i64, now: i64) {
        self.full = false;
        self.last_full = now;
        self.full_after = now.saturating_add(cost.saturating_mul(FULL_SEARCH_SHARE));
    }

    /// Another index of the same table was searched from its very beginning, too.
    pub(super) fn after_further_search(&mut self, cost: i64) {
        let pause = cost.saturating_mul(FULL_SEARCH_SHARE);
        self.full_after = self.full_after.max(self.last_full).saturating_add(pause);
    }

    /// A turn has ended. Whether the policy has changed since it began, so that nothing
    /// that it has found counts.
    pub(super) fn after_turn(&mut self, outcome: Outcome, naptime: i64, now: i64) -> bool {
        self.in_turn = false;
        let arrived = std::mem::replace(&mut self.arrived, Arrived::NOTHING);
        self.last_look = now;
        self.routine = false;
        if arrived.changed {
            self.now();
            return true;
        }
        self.full |= arrived.full;
        self.conclude(outcome, naptime, now);
        if arrived.due != i64::MAX {
            self.look_for_writes(arrived.due);
        }
        false
    }

    fn conclude(&mut self, outcome: Outcome, naptime: i64, now: i64) {
        match outcome {
            Outcome::Unfinished => {
                self.failures = 0;
                self.due = now;
            }
            Outcome::Done {
                next_expiry,
                leftover,
                interval,
            } => {
                self.failures = 0;
                self.leftovers = if leftover {
                    self.leftovers.saturating_add(1)
                } else {
                    0
                };
                let latest = together(now.saturating_add(naptime.max(interval)), naptime);
                let expiry = next_expiry
                    .unwrap_or(i64::MAX)
                    .max(now.saturating_add(MIN_GAP));
                let again = if leftover {
                    // Those that are left may stand before the place reached.
                    self.full = true;
                    now.saturating_add(pause(self.leftovers, naptime))
                } else {
                    i64::MAX
                };
                self.not_before = now.saturating_add(interval);
                self.due = latest
                    .min(expiry)
                    .min(again)
                    .max(now.saturating_add(interval));
                if self.full && !leftover {
                    // A search from the beginning is owed, and was not due yet.
                    let then = self
                        .full_after
                        .max(now.saturating_add(MIN_GAP.max(interval)));
                    self.due = self.due.min(then);
                }
                self.routine = self.due == latest && !self.full;
            }
            Outcome::Failed => {
                self.failures = self.failures.saturating_add(1);
                self.due = now.saturating_add(pause(self.failures, naptime));
                // Who writes to it does not shorten that.
                self.not_before = self.due;
            }
        }
    }

    /// Since when a look has been due, or has last been come to in vain; `None` if one is
    /// going on, or none is wanted.
    pub(super) fn waiting_since(&self) -> Option<i64> {
        let waits = !self.in_turn && self.due != i64::MAX;
        waits.then(|| self.due.max(self.last_look))
    }

    /// Failures in a row.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// The next look begins at the index's very beginning.
    pub(super) fn search_again(&mut self) {
        self.full = true;
    }

    /// Not to be swept (any more).
    pub(super) fn never(&mut self) {
        self.due = i64::MAX;
    }

    /// The policy has changed, or the worker that was at it has died: look now.
    pub(super) fn now(&mut self) {
        if self.in_turn {
            self.arrived.changed = true;
            return;
        }
        self.not_before = i64::MIN;
        self.due = i64::MIN;
        self.routine = false;
        self.full = true;
        self.full_after = i64::MIN;
        self.failures = 0;
        self.leftovers = 0;
    }
}

/// An instant at or before this one, so that many tables with nothing to do are looked at
/// at one time, and not each at its own.
fn together(latest: i64, naptime: i64) -> i64 {
    const SECOND: i64 = 1_000_000;
    latest - latest.rem_euclid((naptime / 10).clamp(1, SECOND))
}

/// The shortest time between two looks that cost so much: one part in twenty.
pub(super) fn interval(cost: i64) -> i64 {
    cost.saturating_mul(FULL_SEARCH_SHARE)
}

/// How long a row is set aside after it has failed so many times (1, 2, ...):
/// one minute, doubled each time, one hour at most.
pub(super) fn set_aside(attempts: u16) -> i64 {
    const MINUTE: i64 = 60_000_000;
    MINUTE
        .saturating_mul(1 << attempts.saturating_sub(1).min(6))
        .min(60 * MINUTE)
}

//! When a table is looked at next. Pure: instants and durations in microseconds, as in
//! timestamptz.

/// Minimum delay between scans of a table that has nothing else pending.
const MIN_GAP: i64 = 500_000;
/// Minimum delay between scans because of writes.
const WRITE_GAP: i64 = 1_000_000;
/// What was written to a table since the last look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::worker) struct Writes {
    /// Any rows.
    pub(in crate::worker) any: bool,
    /// Rows whose time the statement gave, which may have come expired.
    pub(in crate::worker) kept_ts: bool,
}

/// The pause after the first failure; it doubles with each further one.
const FIRST_PAUSE: i64 = 1_000_000;
/// A search from the very beginning of an index, past dead entries, takes at most this fraction
/// of the time.
const FULL_SEARCH_SHARE: i64 = 20;

/// A table's place in the schedule.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Schedule {
    /// When to look next.
    pub(in crate::worker) due: i64,
    last_look: i64,
    /// Failures in a row.
    failures: u32,
    /// Looks in a row that left expired rows behind, locked or blocked.
    leftovers: u32,
    /// Whether the next look begins at the very beginning of the index.
    full: bool,
    /// No such search before this, because the last one was slow.
    full_after: i64,
    /// The last search from the very beginning.
    last_full: i64,
    /// Looks are expensive here: none before this.
    not_before: i64,
    /// The next look is a routine one, for `ttl.naptime`.
    routine: bool,
    /// A session waits for a row, and the next look is for that: what was planned before.
    requested: Option<Planned>,
    /// When the turn began that is going on.
    turn_began: Option<i64>,
    /// What has arrived since the turn began. The turn may have looked before it, so it does not
    /// count as seen when the turn ends.
    arrived: Arrived,
}

/// A look that is put off for rows that sessions wait for.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Planned {
    due: i64,
    routine: bool,
}

/// What has arrived during a turn.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Arrived {
    /// When it needs a look; `i64::MAX` = never.
    due: i64,
    /// The look begins at the very beginning of the index.
    full: bool,
    /// The policy has changed.
    changed: bool,
    /// A session waits for a row.
    requested: bool,
}

impl Arrived {
    const NOTHING: Self = Self {
        due: i64::MAX,
        full: false,
        changed: false,
        requested: false,
    };
}

/// The outcome of a turn at a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) enum Outcome {
    /// There is more to delete.
    Unfinished,
    /// Everything that can be deleted is.
    Done {
        /// When the next row expires, if that is known.
        next_expiry: Option<i64>,
        /// Expired rows are left: locked, or set aside.
        leftover: bool,
        /// Looks are expensive here: no more often than this.
        interval: i64,
    },
    /// Deletion rests, by the table's policy.
    Resting {
        /// When it goes on.
        until: i64,
        /// Looks are expensive here: no more often than this.
        interval: i64,
    },
    /// Rows that sessions wait for are done; the table was not looked through.
    Requested,
    /// The table could not be worked on.
    Failed,
}

/// `FIRST_PAUSE`, doubled for each further time, at most `naptime`.
fn pause(times: u32, naptime: i64) -> i64 {
    let doubled = FIRST_PAUSE.saturating_mul(1 << times.saturating_sub(1).min(30));
    doubled.min(naptime.max(FIRST_PAUSE))
}

impl Default for Schedule {
    /// For an unknown table: look now, from the beginning.
    fn default() -> Self {
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
            requested: None,
            turn_began: None,
            arrived: Arrived::NOTHING,
        }
    }
}

impl Schedule {
    /// Begins a turn: what arrives from now on is kept for the next one.
    pub(in crate::worker) fn begin_turn(&mut self, now: i64) {
        self.turn_began = Some(now);
        self.arrived = Arrived::NOTHING;
    }

    /// Ends the turn as if it had not begun.
    pub(in crate::worker) fn abandon_turn(&mut self) {
        if self.turn_began.take().is_none() {
            return;
        }
        let arrived = std::mem::replace(&mut self.arrived, Arrived::NOTHING);
        if arrived.changed {
            self.now();
        }
        self.full |= arrived.full;
        self.routine &= arrived.due == i64::MAX;
    }

    /// A session waits for a row: a turn is due now, at that row only, unless one was due anyhow.
    pub(in crate::worker) fn request(&mut self, now: i64) {
        if self.turn_began.is_some() {
            self.arrived.requested = true;
        } else if self.requested.is_none() && self.due > now {
            self.requested = Some(Planned {
                due: self.due,
                routine: self.routine,
            });
            self.due = now;
            self.routine = false;
        }
    }

    /// Whether this turn is for rows only that sessions wait for.
    pub(in crate::worker) fn is_only_requested(&self, now: i64) -> bool {
        self.requested.is_some_and(|planned| planned.due > now)
    }

    /// Whether this is a routine scan: no row is known to have expired, and no policy has changed.
    pub(in crate::worker) fn is_routine(&self) -> bool {
        self.routine
    }

    /// The table was written to. `shortest`: how soon rows that a statement writes can expire.
    pub(in crate::worker) fn after_writes(&mut self, writes: Writes, shortest: i64, now: i64) {
        let soonest = if writes.kept_ts { 0 } else { shortest };
        let due = now.saturating_add(soonest);
        if self.turn_began.is_some() {
            self.arrived.full |= writes.kept_ts;
            self.arrived.due = self.arrived.due.min(due);
        } else {
            self.full |= writes.kept_ts;
            self.look_for_writes(due);
        }
    }

    /// Because of writes a look is needed at this time, or as soon as possible after it.
    fn look_for_writes(&mut self, at: i64) {
        let due = self
            .last_look
            .saturating_add(WRITE_GAP)
            .max(at)
            .max(self.not_before);
        self.due = self.due.min(due);
        self.routine = false;
        if let Some(planned) = &mut self.requested {
            planned.due = planned.due.min(due);
            planned.routine = false;
        }
    }

    /// Whether this look begins at the very beginning of the index.
    pub(in crate::worker) fn begins_full(&self, naptime: i64, now: i64) -> bool {
        // Also at each routine look, in case something was not announced.
        let long_ago = now.saturating_sub(self.last_full) >= naptime - apart(naptime);
        (self.full || long_ago) && now >= self.full_after
    }

    /// A search from the very beginning has found its first row, or none; or all of the table was read, for lack of an
    /// index. Not again before `pause` is over.
    pub(in crate::worker) fn after_full_search(&mut self, pause: i64, now: i64) {
        self.full = false;
        self.last_full = now;
        self.full_after = now.saturating_add(pause);
    }

    /// Rows that cannot be deleted have taken so much time that no search from the beginning is to
    /// meet them before this. Returns when the next one may be.
    pub(in crate::worker) fn after_futile_search(&mut self, until: i64) -> i64 {
        self.full_after = self.full_after.max(until);
        self.full_after
    }

    /// Another index of the same table was searched from its very beginning.
    pub(in crate::worker) fn after_further_search(&mut self, cost: i64) {
        let pause = cost.saturating_mul(FULL_SEARCH_SHARE);
        self.full_after = self.full_after.max(self.last_full).saturating_add(pause);
    }

    /// Ends a turn. True if the policy has changed since it began, so that its findings do not
    /// count.
    pub(in crate::worker) fn after_turn(
        &mut self,
        outcome: Outcome,
        naptime: i64,
        now: i64,
    ) -> bool {
        self.turn_began = None;
        let arrived = std::mem::replace(&mut self.arrived, Arrived::NOTHING);
        if let (Outcome::Requested, Some(planned)) = (outcome, self.requested.take()) {
            (self.due, self.routine) = (planned.due, planned.routine);
        } else {
            self.last_look = now;
            self.routine = false;
        }
        if arrived.changed {
            self.now();
            return true;
        }
        self.full |= arrived.full;
        self.conclude(outcome, naptime, now);
        if arrived.due != i64::MAX {
            self.look_for_writes(arrived.due);
        }
        if arrived.requested {
            self.request(now);
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
                    // The rows left behind may be before the position reached.
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
                    // A search from the beginning is owed, but was not due yet.
                    let then = self
                        .full_after
                        .max(now.saturating_add(MIN_GAP.max(interval)));
                    self.due = self.due.min(then);
                }
                self.routine = self.due == latest && !self.full;
            }
            Outcome::Resting { until, interval } => {
                self.failures = 0;
                // Rows that come to be meanwhile may have expired by then.
                self.full = true;
                // Once in a naptime, so that the figures stay true.
                let look = now.saturating_add(naptime.max(interval));
                self.due = until.min(look).max(now.saturating_add(1));
                // Writes do not shorten that.
                self.not_before = self.due;
            }
            Outcome::Requested => {}
            Outcome::Failed => {
                self.failures = self.failures.saturating_add(1);
                self.due = now.saturating_add(pause(self.failures, naptime));
                // Writes do not shorten that.
                self.not_before = self.due;
            }
        }
    }

    /// Since when a look has been due, or the last one came to nothing; `None` during a look, or
    /// if none is needed.
    pub(in crate::worker) fn waiting_since(&self) -> Option<i64> {
        let waits = self.turn_began.is_none() && self.due != i64::MAX;
        waits.then(|| self.due.max(self.last_look))
    }

    /// When the turn began that is going on.
    pub(in crate::worker) fn in_turn_since(&self) -> Option<i64> {
        self.turn_began
    }

    /// Failures in a row.
    pub(in crate::worker) fn failures(&self) -> u32 {
        self.failures
    }

    /// Makes the next look begin at the very beginning of the index.
    pub(in crate::worker) fn search_again(&mut self) {
        self.full = true;
    }

    /// The table is not to be swept (any more).
    pub(in crate::worker) fn never(&mut self) {
        self.requested = None;
        self.due = i64::MAX;
    }

    /// The policy has changed, or the table's worker has died: look now.
    pub(in crate::worker) fn now(&mut self) {
        if self.turn_began.is_some() {
            self.arrived.changed = true;
            return;
        }
        self.requested = None;
        self.not_before = i64::MIN;
        self.due = i64::MIN;
        self.routine = false;
        self.full = true;
        self.full_after = i64::MIN;
        self.failures = 0;
        self.leftovers = 0;
    }
}

/// An instant at or before this one, shared by many tables, so that those with nothing to do are
/// looked at together, and workers are not there all the time.
fn together(latest: i64, naptime: i64) -> i64 {
    latest - latest.rem_euclid(apart(naptime))
}

/// How far such instants are apart.
fn apart(naptime: i64) -> i64 {
    const MOST: i64 = 15_000_000;
    (naptime / 4).clamp(1, MOST)
}

/// Minimum delay between scans of this cost: scans take at most one part in twenty of the time.
pub(in crate::worker) fn interval(cost: i64) -> i64 {
    cost.saturating_mul(FULL_SEARCH_SHARE)
}

/// A table is not read for this long, if that is more than its due.
pub(in crate::worker) const LATE: i64 = 60_000_000;
/// The same of all of the table, for what no range tells of.
pub(in crate::worker) const VERY_LATE: i64 = 600_000_000;

/// Minimum delay before a table without an index is read again, after a pass that read this number of blocks at this
/// cost: passes take one part in a hundred of the time, unless that would be later than `late`. A machine that is busy with other things does not make it long.
pub(in crate::worker) fn interval_of_reading(cost: i64, blocks: u64, late: i64) -> i64 {
    /// A read of one block from disk, and of its rows, twice.
    const BLOCK: u64 = 200;
    const SHARE: i64 = 100;
    let most = i64::try_from(blocks.saturating_mul(BLOCK)).unwrap_or(i64::MAX);
    let cost = cost.min(most);
    cost.saturating_mul(SHARE).min(late).max(interval(cost))
}

/// How long a row is set aside after this number of failures. The first time it is one minute, then
/// twice as long each time, up to one hour. If another transaction was in its way, it is two seconds, up
/// to one minute.
pub(in crate::worker) fn set_aside(attempts: u16, of_contention: bool) -> i64 {
    const SECOND: i64 = 1_000_000;
    const MINUTE: i64 = 60 * SECOND;
    let (first, longest) = match of_contention {
        true => (2 * SECOND, MINUTE),
        false => (MINUTE, 60 * MINUTE),
    };
    first
        .saturating_mul(1 << attempts.saturating_sub(1).min(6))
        .min(longest)
}

//! Time belongs to owners: who is first, for how long, and who must wait. Pure: instants and
//! durations in microseconds, as in timestamptz
//! (`docs/decisions/0023-time-belongs-to-owners.md`).

use std::time::Duration;

/// After so long, used time counts half.
const HALF_LIFE: f64 = 20_000_000.0;
/// Owners whose used time differs by less have the same rank.
const RANK: i64 = 100_000;
/// After a turn as long as this, the worker looks for new work, and the launcher takes care of
/// what waits for this worker.
pub(in crate::worker) const LONG_TURN: i64 = 100_000;
/// The first limit of a transaction,
const FIRST_LIMIT: Duration = Duration::from_millis(500);
/// and the factor by which it grows each time it is exceeded.
const GROWTH: u32 = 4;
/// More steps than any limit has.
const MOST_LEVELS: u8 = 16;
/// The longest time that a transaction goes on while others wait, if its limit is not less: that grows a little, too, so
/// that an honest table's work can finish some day.
pub(in crate::worker) const PATIENCE: Duration = Duration::from_secs(2);
/// A batch of few rows that takes this long is slow, even if it ends.
const SLOW_BATCH: Duration = Duration::from_millis(250);
const FEW_ROWS: u64 = 10;
/// An owner that was refused a worker for so long comes before others.
const REFUSED: i64 = 2_000_000;

/// Used time, which counts for less as it ages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::worker) struct Used {
    micros: i64,
    at: i64,
}

impl Used {
    /// How much of it counts now.
    pub(in crate::worker) fn now(&self, now: i64) -> i64 {
        let age = now.saturating_sub(self.at).max(0) as f64;
        // Conversions of floats saturate.
        (self.micros as f64 * (-age / HALF_LIFE).exp2()) as i64
    }

    /// Adds time that was just used.
    pub(in crate::worker) fn add(&mut self, took: i64, now: i64) {
        *self = Self {
            micros: self.now(now).saturating_add(took.max(0)),
            at: now,
        };
    }
}

/// An owner's rank: those who have used less are first.
pub(in crate::worker) fn rank(used: i64) -> i64 {
    used / RANK
}

/// An owner with due tables, as far as it matters which one gets a worker first.
#[derive(Debug, Clone, Copy)]
pub(in crate::worker) struct Applicant {
    /// The owner's workers in that database.
    pub(in crate::worker) workers: usize,
    /// Since when the owner has been refused one.
    pub(in crate::worker) refused: i64,
    /// The owner's rank.
    pub(in crate::worker) rank: i64,
    /// When a worker was last started there.
    pub(in crate::worker) started_at: i64,
}

impl Applicant {
    /// The order: those without a worker; of these, first those that were refused a while ago, since
    /// routine scans of tables with nothing to do, whose owners' rank is the lowest, would come
    /// before them again and again; then those who have used least time; then the one without a
    /// worker for longest.
    pub(in crate::worker) fn order(&self, now: i64) -> (usize, i64, i64, i64) {
        let refused = match now.saturating_sub(self.refused) {
            long if long >= REFUSED => self.refused,
            _ => i64::MAX,
        };
        (self.workers, refused, self.rank, self.started_at)
    }
}

/// What is known about the time a table takes.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Habit {
    /// How often its limit has grown.
    level: u8,
    /// Its last turn exceeded a limit that had grown, or took very long for few rows.
    pub(crate) slow: bool,
    /// The log says so already.
    pub(in crate::worker) said: bool,
    /// Time used.
    pub(crate) used: i64,
}

/// The time that a turn has taken.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::worker) struct Spent {
    pub(in crate::worker) took: Duration,
    /// Its longest transaction.
    pub(in crate::worker) longest: Duration,
    /// One was cancelled for exceeding its limit.
    pub(in crate::worker) timed_out: bool,
    /// A batch was slow ([`is_slow_batch`]), or ended the worker.
    pub(in crate::worker) dawdled: bool,
}

/// Whether a batch of this number of rows, with cascades, has taken too long.
pub(in crate::worker) fn is_slow_batch(rows: u64, took: Duration) -> bool {
    rows <= FEW_ROWS && took >= SLOW_BATCH
}

impl Habit {
    /// The time limit of a transaction in the next turn, at most `most`.
    pub(in crate::worker) fn limit(&self, most: Duration) -> Duration {
        limit(self.level, most)
    }

    /// Whether its turns count among those that must leave one worker free.
    pub(in crate::worker) fn is_suspect(&self) -> bool {
        self.slow || self.level > 0
    }

    pub(in crate::worker) fn after_turn(&mut self, spent: &Spent, most: Duration) {
        if spent.longest.is_zero() && !spent.dawdled {
            // It has not looked at the table.
            return;
        }
        self.used = self.used.saturating_add(micros(spent.took));
        self.slow = spent.dawdled || (spent.timed_out && self.level > 0);
        if spent.timed_out {
            if limit(self.level, most) < most {
                self.level = self.level.saturating_add(1).min(MOST_LEVELS);
            }
        } else if self.level > 0 && spent.longest < limit(self.level - 1, most) / 2 {
            self.level -= 1;
        }
    }
}

fn limit(level: u8, most: Duration) -> Duration {
    let factor = GROWTH.saturating_pow(u32::from(level));
    FIRST_LIMIT.saturating_mul(factor).min(most)
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// Whether one more worker may have a turn at a slow table while this number of others do: one worker is left for other
/// tables. With only one worker, the time limits must do.
pub(in crate::worker) fn admits_slow(others: usize, workers: usize) -> bool {
    others < workers.saturating_sub(1).max(1)
}

/// For how long more of an owner's tables have been due than the owner has workers.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::worker) struct Backlog {
    since: Option<i64>,
}

impl Backlog {
    /// After so long another worker is started. Scans of many tables in which nothing is expired take
    /// less.
    const LASTS: i64 = 1_000_000;

    /// Whether another worker is to be started now: again and again as long as it goes on.
    pub(in crate::worker) fn needs_another(
        &mut self,
        due_tables: usize,
        workers: usize,
        now: i64,
    ) -> bool {
        if due_tables <= workers {
            self.since = None;
            return false;
        }
        let lasts = now.saturating_sub(*self.since.get_or_insert(now)) >= Self::LASTS;
        if lasts {
            self.since = Some(now);
        }
        lasts
    }
}

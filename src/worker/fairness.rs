//! Time belongs to owners: who goes first, for how long, and who is left out for now.
//! Pure: instants and durations in microseconds, as timestamptz has them.
//! (`docs/decisions/0023-time-belongs-to-owners.md`)

use std::time::Duration;

/// After so much time, time used counts half.
const HALF_LIFE: f64 = 20_000_000.0;
/// Owners who differ by less than this have used the same.
const RANK: i64 = 100_000;
/// After a turn as long as this, who waits is looked at anew, and the launcher sees to
/// others that wait for this worker.
pub(super) const LONG_TURN: Duration = Duration::from_millis(100);
/// The limit of a transaction at a table of which nothing bad is known,
const FIRST_LIMIT: Duration = Duration::from_millis(500);
/// and by how much it grows each time it is exceeded.
const GROWTH: u32 = 4;
/// More steps than a limit has.
const MOST_LEVELS: u8 = 16;
/// The longest time that a transaction goes on while others wait.
const PATIENCE: Duration = Duration::from_secs(2);
/// Who takes so long for so few rows is slow, though it comes to an end.
const SLOW_BATCH: Duration = Duration::from_millis(250);
const FEW_ROWS: u64 = 10;
/// For so long an owner is one with a slow table after it was met last.
const SLOW_FOR: i64 = 600_000_000;

/// Time used, of which less and less counts.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Used {
    micros: i64,
    at: i64,
}

impl Used {
    /// What counts of it now.
    pub(super) fn now(&self, now: i64) -> i64 {
        let age = now.saturating_sub(self.at).max(0) as f64;
        // Conversions of floats saturate.
        (self.micros as f64 * (-age / HALF_LIFE).exp2()) as i64
    }

    /// Adds what has been used just now.
    pub(super) fn add(&mut self, took: i64, now: i64) {
        *self = Self {
            micros: self.now(now).saturating_add(took.max(0)),
            at: now,
        };
    }
}

/// An owner's place: those who have used less go first.
pub(super) fn rank(used: i64) -> i64 {
    used / RANK
}

/// In which order tables that are due have their turn: (rank of the owner, due).
pub(super) fn order<T>(tables: &mut [(i64, i64, T)]) {
    tables.sort_by_key(|(rank, due, _)| (*rank, *due));
}

/// What is known of how a table takes its time.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Habit {
    /// How often its limit has grown.
    level: u8,
    /// Its last turn ran into a limit that had grown, or took very long for few rows.
    pub(crate) slow: bool,
    /// That has been said in the log.
    pub(super) said: bool,
    /// Time used.
    pub(crate) used: i64,
}

/// What a turn has come to, as far as time goes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spent {
    pub(super) took: Duration,
    /// Its longest transaction.
    pub(super) longest: Duration,
    /// One was cancelled for its time.
    pub(super) timed_out: bool,
    /// It took [`is_slow_batch`] for a batch, or ended the worker.
    pub(super) dawdled: bool,
}

/// Whether a batch of so many rows, cascades included, has taken too long.
pub(super) fn is_slow_batch(rows: u64, took: Duration) -> bool {
    rows <= FEW_ROWS && took >= SLOW_BATCH
}

impl Habit {
    /// The longest that a transaction of its next turn may take, `most` at the most.
    pub(super) fn limit(&self, most: Duration) -> Duration {
        limit(self.level, most)
    }

    /// After so much of it a transaction ends if somebody else waits. Grows a little, too:
    /// what an honest table has to do must come to an end some time.
    pub(super) fn patience(&self, most: Duration) -> Duration {
        self.limit(most).min(PATIENCE)
    }

    /// Whether its turns are counted among those of which one worker is kept free.
    pub(super) fn is_suspect(&self) -> bool {
        self.slow || self.level > 0
    }

    /// A turn has ended.
    pub(super) fn after_turn(&mut self, spent: &Spent, most: Duration) {
        if spent.longest.is_zero() && !spent.dawdled {
            // It has not looked.
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

/// Whether an owner is one with a slow table, who was last met with one `at` (0 = never).
pub(super) fn has_slow_table(at: i64, now: i64) -> bool {
    at != 0 && now.saturating_sub(at) < SLOW_FOR
}

/// Whether one more worker may have a turn at a table of somebody who is slow, while so
/// many others have: one is left for those who are not. Where there is only one, the limits
/// of the turns alone must do.
pub(super) fn admits_slow(others: usize, workers: usize) -> bool {
    others < workers.saturating_sub(1).max(1)
}

/// A database with workers, as the launcher sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Staffed {
    /// Its workers, and those of them that have been in a turn for long.
    pub(super) workers: usize,
    pub(super) long: usize,
    /// A policy has changed, or rows were written, that no worker has taken notice of.
    pub(super) unnoticed: bool,
    /// When the first table is due that no worker is at; `i64::MAX` = none.
    pub(super) first_due: i64,
    /// Tables that are due, as its workers say.
    pub(super) due_tables: usize,
}

/// When another worker is needed there; `i64::MAX`: the workers themselves see to what comes.
pub(super) fn needs_another(database: &Staffed, now: i64) -> i64 {
    if database.long < database.workers {
        if database.due_tables > database.workers {
            now
        } else {
            i64::MAX
        }
    } else if database.unnoticed {
        now
    } else {
        database.first_due
    }
}

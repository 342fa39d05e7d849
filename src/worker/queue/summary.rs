//! When rows expire in each range of blocks of a table that is read for lack of an index
//! (`docs/decisions/0094-no-index-where-none-is-needed.md`). Pure.

use crate::policy::micros;

/// How many ranges a table has at most,
pub(in crate::worker) const RANGES: usize = 32;
/// and how many blocks a range has at least.
pub(in crate::worker) const NARROWEST: u32 = 256;

/// For each range of blocks when its first row expires, of those that were visible when it was read: in seconds since
/// 2000, so that it fits into the table's state.
///
/// Rows that are written later expire later than the table was read by as much as they live, and so not before
/// [`Self::is_complete`] says. What neither is true of is found when all of the table is read again, in a naptime.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) struct Summary {
    /// How many blocks a range has.
    width: u32,
    /// The least override that was seen, in seconds; 0 = none.
    least_override: i32,
    /// Rows that were written after all of the table was read have no earlier time than this; `i64::MIN` = it was not read.
    written_since: i64,
    due: [u32; RANGES],
}

/// The range is to be read.
const UNKNOWN: u32 = 0;
/// Nothing in the range expires.
const NEVER: u32 = u32::MAX;

impl Summary {
    /// Of a table of which nothing is known.
    pub(in crate::worker) const fn new() -> Self {
        Self {
            width: NARROWEST,
            least_override: 0,
            written_since: i64::MIN,
            due: [UNKNOWN; RANGES],
        }
    }

    /// Widens the ranges until they cover a table of this number of blocks.
    pub(in crate::worker) fn fit(&mut self, blocks: u32) {
        while u64::from(self.width) * (RANGES as u64) < u64::from(blocks) {
            for range in 0..RANGES / 2 {
                self.due[range] = self.due[2 * range].min(self.due[2 * range + 1]);
            }
            self.due[RANGES / 2..].fill(UNKNOWN);
            self.width *= 2;
        }
    }

    /// The first block from `block` to before `end` that is to be read at `now`; `end` if there is none. A range that
    /// was begun is read to its end.
    pub(in crate::worker) fn next_due(&self, mut block: u32, end: u32, now: i64) -> u32 {
        while block < end
            && block.is_multiple_of(self.width)
            && seconds(now) < self.due[self.range(block)]
        {
            block = self.end_of(block);
        }
        block.min(end)
    }

    /// Where the range of a block begins,
    pub(in crate::worker) fn begin_of(&self, block: u32) -> u32 {
        block - block % self.width
    }

    /// and where it ends.
    pub(in crate::worker) fn end_of(&self, block: u32) -> u32 {
        self.begin_of(block).saturating_add(self.width)
    }

    fn range(&self, block: u32) -> usize {
        ((block / self.width) as usize).min(RANGES - 1)
    }

    /// The first row in the range of a block expires at this instant, which is rounded up to a second; `None`: no row does.
    pub(in crate::worker) fn note(&mut self, block: u32, due: Option<i64>) {
        self.due[self.range(block)] = due.map_or(NEVER, |due| {
            seconds(due.saturating_add(micros(1) - 1)).max(1)
        });
    }

    /// The range of a block could not be read.
    pub(in crate::worker) fn forget(&mut self, block: u32) {
        self.due[self.range(block)] = UNKNOWN;
    }

    /// Whether the ranges that are due are all that is to be read at `now`, if a row is due `soonest` microseconds after
    /// it was written at the earliest, or never.
    pub(in crate::worker) fn is_complete(&self, now: i64, soonest: Option<i64>) -> bool {
        let until = soonest.map_or(i64::MAX, |soonest| {
            self.written_since.saturating_add(soonest)
        });
        self.written_since != i64::MIN && now < until
    }

    /// All of the table was read. Rows that were written after it have no earlier time than this.
    pub(in crate::worker) fn complete(&mut self, written_since: i64) {
        self.written_since = written_since;
    }

    /// When the first row expires that expires after `after`, of the first rows of all ranges before `end`.
    pub(in crate::worker) fn next_after(&self, after: i64, end: u32) -> Option<i64> {
        let ranges = self.due.iter().take(end.div_ceil(self.width) as usize);
        let later = ranges.filter(|&&due| due != NEVER && due > seconds(after));
        later.min().map(|&due| micros_of(due))
    }

    /// What part of the ranges before `end` is due at `then`.
    pub(in crate::worker) fn part_due(&self, then: i64, end: u32) -> f64 {
        let ranges = self.due.iter().take(end.div_ceil(self.width) as usize);
        let all = ranges.len().max(1);
        ranges.filter(|&&due| due <= seconds(then)).count() as f64 / all as f64
    }

    /// Whether one of the ranges before `end` could not be read.
    pub(in crate::worker) fn is_incomplete(&self, end: u32) -> bool {
        let mut ranges = self.due.iter().take(end.div_ceil(self.width) as usize);
        ranges.any(|&due| due == UNKNOWN)
    }

    /// The least override that is known.
    pub(in crate::worker) fn least_override(&self) -> Option<i32> {
        (self.least_override > 0).then_some(self.least_override)
    }

    pub(in crate::worker) fn note_override(&mut self, seconds: i32) {
        self.least_override = self
            .least_override()
            .map_or(seconds, |least| least.min(seconds));
    }

    /// Before all of the table is read: overrides that are gone do not count.
    pub(in crate::worker) fn begin_anew(&mut self) {
        self.least_override = 0;
        self.written_since = i64::MIN;
    }
}

/// The second in which an instant is. Beyond what is counted, it is the first or the last.
fn seconds(instant: i64) -> u32 {
    u32::try_from(instant.div_euclid(micros(1)).max(0)).unwrap_or(NEVER)
}

fn micros_of(seconds: u32) -> i64 {
    i64::from(seconds) * micros(1)
}

//! When rows expire in each range of blocks of a table that is read for lack of an index
//! (`docs/decisions/0094-no-index-where-none-is-needed.md`). Pure.

use crate::policy::micros;

/// How many ranges a table has at most,
pub(in crate::worker) const RANGES: usize = 64;
/// and how many blocks a range has at least.
pub(in crate::worker) const NARROWEST: u32 = 256;

/// For each range of blocks the earliest time at which it has to be read: in seconds since 2000, so that it fits into
/// the table's state.
///
/// It holds for rows that were visible when the range was read, and for those that are written later, as far as their
/// time to live is known ([`Self::bound`]). What it does not hold for is found when all of the table is read.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) struct Summary {
    /// How many blocks a range has.
    width: u32,
    /// The least override that was seen, in seconds; 0 = none.
    least_override: i32,
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
            due: [UNKNOWN; RANGES],
        }
    }

    /// Makes the ranges so wide that they cover so many blocks.
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

    /// The range of a block is to be read again at this instant, rounded up to a second; `None`: not until all is read.
    pub(in crate::worker) fn note(&mut self, block: u32, due: Option<i64>) {
        self.due[self.range(block)] = due.map_or(NEVER, |due| {
            seconds(due.saturating_add(micros(1) - 1)).max(1)
        });
    }

    /// The range of a block could not be read.
    pub(in crate::worker) fn forget(&mut self, block: u32) {
        self.due[self.range(block)] = UNKNOWN;
    }

    /// All ranges are to be read again at this instant at the latest.
    pub(in crate::worker) fn bound(&mut self, due: i64) {
        let due = seconds(due).max(1);
        for range in &mut self.due {
            *range = (*range).min(due);
        }
    }

    /// When the first of the ranges before `end` is to be read again that is not to be read up to `after`.
    pub(in crate::worker) fn next_after(&self, after: i64, end: u32) -> Option<i64> {
        let ranges = self.due.iter().take(end.div_ceil(self.width) as usize);
        let later = ranges.filter(|&&due| due != NEVER && due > seconds(after));
        later.min().map(|&due| micros_of(due))
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

    /// An override was seen.
    pub(in crate::worker) fn note_override(&mut self, seconds: i32) {
        self.least_override = self
            .least_override()
            .map_or(seconds, |least| least.min(seconds));
    }

    /// Before all of the table is read: overrides that are gone do not count.
    pub(in crate::worker) fn forget_overrides(&mut self) {
        self.least_override = 0;
    }
}

/// The second in which an instant is. Beyond what is counted, it is the first or the last.
fn seconds(instant: i64) -> u32 {
    u32::try_from(instant.div_euclid(micros(1)).max(0)).unwrap_or(NEVER)
}

fn micros_of(seconds: u32) -> i64 {
    i64::from(seconds) * micros(1)
}

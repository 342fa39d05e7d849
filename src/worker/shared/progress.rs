//! How far deletion in a table has come.

use crate::deletion::expiry_keys::{EXPIRY_KEYS, IndexPosition};
use crate::worker::queue::summary::Summary;

/// How far deletion in a table has come.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    /// The size of the next batch.
    pub(in crate::worker) batch: u32,
    /// The next block of a heap sweep; -1 = none is going on.
    pub(in crate::worker) next_block: i64,
    /// Where that sweep ends.
    pub(in crate::worker) end_block: i64,
    /// In the next block, only rows after this offset.
    pub(in crate::worker) next_offset: u16,
    /// How many blocks a batch of that sweep reads.
    pub(in crate::worker) blocks: i64,
    /// For each expiry key: how far it has come.
    positions: [IndexPosition; EXPIRY_KEYS],
    /// The expiry key that the next turn begins with (M9),
    pub(in crate::worker) first_expiry_key: u16,
    /// and how many before it, in a row, have come to their end in this pass.
    pub(in crate::worker) expiry_keys_done: u16,
    /// When the pass that is going on began; 0 = none.
    pub(in crate::worker) pass_began: i64,
    /// Rows deleted in it.
    pub(in crate::worker) pass_rows: u64,
    /// The pass began at the very beginning of the indexes, and has found no row yet.
    pub(in crate::worker) full_search: bool,
    /// The order in which to go on has been decided.
    pub(in crate::worker) estimated: bool,
    /// How long its attempts at rows that cannot be deleted have taken, in microseconds.
    pub(in crate::worker) futile: i64,
    /// It does not come to all rows: it did not begin at the beginning, or has left some out.
    pub(in crate::worker) partial: bool,
    /// For each expiry key: where the next search for what may go begins.
    rear: [IndexPosition; EXPIRY_KEYS],
    /// Rows that the pass found locked, or could not set aside,
    pub(in crate::worker) locked: u64,
    /// and when the first of them expired; 0 = not known.
    pub(in crate::worker) oldest_locked: i64,
    /// When the pass began a heap sweep; 0 = it has not.
    pub(in crate::worker) sweep_began: i64,
    /// That sweep reads the whole table, not only the ranges that are due.
    pub(in crate::worker) reads_whole: bool,
    /// It has noted of all ranges so far when they are due.
    pub(in crate::worker) summarizes: bool,
    /// What is known of those ranges.
    pub(in crate::worker) summary: Summary,
    /// When the first row expires of those that the pass has read in them, exactly; `i64::MAX` = none does.
    pub(in crate::worker) first_read: i64,
    /// How many blocks the pass has read to find that, and how long it took, in microseconds.
    pub(in crate::worker) read_blocks: u32,
    pub(in crate::worker) reading: i64,
    /// Rows inserted and updated, by the table's statistics, when the pass began; -1 = not known.
    pub(in crate::worker) written: i64,
    /// The same when the last pass began that came to all rows and left nothing to do.
    pub(in crate::worker) writes_seen: i64,
    /// When the next row expires, by that look.
    pub(in crate::worker) next_expiry: i64,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            batch: 0,
            next_block: -1,
            end_block: 0,
            next_offset: 0,
            blocks: 0,
            positions: [IndexPosition::BEGINNING; EXPIRY_KEYS],
            first_expiry_key: 0,
            expiry_keys_done: 0,
            pass_began: 0,
            pass_rows: 0,
            full_search: false,
            estimated: false,
            futile: 0,
            partial: false,
            rear: [IndexPosition::BEGINNING; EXPIRY_KEYS],
            locked: 0,
            oldest_locked: 0,
            sweep_began: 0,
            reads_whole: false,
            summarizes: false,
            summary: Summary::new(),
            first_read: i64::MAX,
            read_blocks: 0,
            reading: 0,
            written: -1,
            writes_seen: -1,
            next_expiry: 0,
        }
    }
}

impl Progress {
    /// How far an expiry key has come; the beginning if its progress is not kept.
    pub(in crate::worker) fn position(&self, expiry_key: usize) -> IndexPosition {
        let position = self.positions.get(expiry_key).copied();
        position.unwrap_or(IndexPosition::BEGINNING)
    }

    /// Notes how far an expiry key has come, if its progress is kept.
    pub(in crate::worker) fn set_position(&mut self, expiry_key: usize, to: IndexPosition) {
        if let Some(position) = self.positions.get_mut(expiry_key) {
            *position = to;
        }
    }

    /// Whether rows have been left out that are to be searched for again.
    pub(in crate::worker) fn leaves_out(&self) -> bool {
        self.rear
            .iter()
            .any(|&rear| rear != IndexPosition::BEGINNING)
    }

    /// After failures that took too long: leaves out the first half of what is between here and
    /// `top`, or all of it if that is little. The next search from the beginning begins here.
    pub(in crate::worker) fn leave_out(&mut self, expiry_key: usize, top: i64, little: i64) {
        let position = self.position(expiry_key);
        if let Some(rear) = self.rear.get_mut(expiry_key)
            && *rear == IndexPosition::BEGINNING
        {
            *rear = position;
        }
        self.partial = true;
        let low = position.key;
        let left = top.saturating_sub(low.max(0));
        let next = if left > little {
            top - left / 2
        } else {
            top + 1
        };
        let next = next.max(low.saturating_add(1));
        self.set_position(expiry_key, IndexPosition::at(next));
    }

    /// Whether the pass has left no expired row, not even one whose commit was not announced.
    pub(in crate::worker) fn has_come_to_all(&self) -> bool {
        !self.partial && self.locked == 0
    }

    /// The next full pass leaves out nothing.
    pub(in crate::worker) fn search_from_the_beginning(&mut self) {
        self.rear = [IndexPosition::BEGINNING; EXPIRY_KEYS];
    }

    /// Begins a pass, where the last one stopped or at the very beginning; there, what an earlier one
    /// could not delete comes last.
    pub(in crate::worker) fn begin_pass(&mut self, now: i64, full: bool, written: i64) {
        let resumes = full && self.leaves_out();
        *self = Self {
            // The rows there have failed, or are next to such.
            batch: if resumes { 1 } else { self.batch },
            positions: if full { self.rear } else { self.positions },
            rear: if full {
                [IndexPosition::BEGINNING; EXPIRY_KEYS]
            } else {
                self.rear
            },
            partial: resumes || !full,
            summary: self.summary,
            // What was seen of all rows holds as long as nothing is written.
            writes_seen: if full { -1 } else { self.writes_seen },
            pass_began: now,
            full_search: full,
            written,
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: i64 = 10;
    const TOP: i64 = 1_000_000;

    #[test]
    fn what_is_left_out_comes_next_time() {
        let mut progress = Progress::default();
        progress.begin_pass(1, true, 0);
        assert!(!progress.partial && !progress.leaves_out());
        assert!(progress.has_come_to_all());
        progress.set_position(0, IndexPosition::at(100));
        let mut jumps = 0;
        while progress.position(0).key <= TOP {
            progress.leave_out(0, TOP, LITTLE);
            jumps += 1;
        }
        assert!(jumps < 25, "{jumps}");
        assert!(progress.partial && progress.leaves_out());
        // What has expired since comes first,
        let front = progress.position(0).key;
        progress.begin_pass(2, false, 0);
        assert_eq!(progress.position(0).key, front);
        assert!(progress.partial && progress.leaves_out());
        assert!(!progress.has_come_to_all());
        // then what was left out, with single rows,
        progress.batch = 500;
        progress.begin_pass(3, true, 0);
        assert_eq!((progress.position(0).key, progress.batch), (100, 1));
        assert!(progress.partial && !progress.leaves_out());
        // and then all.
        progress.begin_pass(4, true, 0);
        assert_eq!(progress.position(0).key, i64::MIN);
        assert!(!progress.partial);
    }

    /// However many of one instant cannot be set aside.
    #[test]
    fn rows_without_a_place_are_not_met_again_at_once() {
        let mut progress = Progress::default();
        for offset in 1..4 {
            let passed = IndexPosition::after(500, (7, offset));
            progress.set_position(0, passed);
            progress.leave_out(0, TOP, LITTLE);
            progress.begin_pass(1, true, 0);
            assert_eq!(progress.position(0), passed);
        }
    }
}

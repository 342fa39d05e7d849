//! What a worker's slot says of its turn. Each field stands for itself, as in pg_stat_progress_*: a reader of all of
//! them may see two moments.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// In a worker's slot.
#[repr(C)]
pub(in crate::worker) struct Report {
    /// The table of its turn; 0 = none.
    pub(super) table: AtomicU32,
    /// A [`Phase`].
    pub(super) phase: AtomicU8,
    /// 0, or a [`crate::worker::queue::throttle::Cause`] of the pause that is going on.
    pub(super) pause: AtomicU8,
    /// The share of its time that it deletes, in hundredths of a percent; 0 = not known yet.
    pub(super) effort: AtomicU32,
}

/// What a worker does in its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::worker) enum Phase {
    Idle,
    Preparing,
    DroppingPartition,
    SweepingIndex,
    SweepingHeap,
    LookingAhead,
}

impl Phase {
    pub(super) const ALL: [(Self, &'static str); 6] = [
        (Self::Idle, "idle"),
        (Self::Preparing, "preparing"),
        (Self::DroppingPartition, "dropping partition"),
        (Self::SweepingIndex, "sweeping index"),
        (Self::SweepingHeap, "sweeping heap"),
        (Self::LookingAhead, "looking ahead"),
    ];
}

impl Report {
    /// The table of its turn.
    pub(in crate::worker) fn table(&self) -> Option<u32> {
        Some(self.table.load(Ordering::Relaxed)).filter(|&table| table != 0)
    }

    /// A turn begins at a table, or, with 0, ends.
    pub(in crate::worker) fn set_table(&self, table: u32) {
        let phase = if table == 0 {
            Phase::Idle
        } else {
            Phase::Preparing
        };
        self.phase.store(phase as u8, Ordering::Relaxed);
        self.pause.store(0, Ordering::Relaxed);
        self.table.store(table, Ordering::Relaxed);
    }

    /// A new process has come into the slot.
    pub(in crate::worker) fn clear(&self) {
        self.set_table(0);
        self.effort.store(0, Ordering::Relaxed);
    }
}

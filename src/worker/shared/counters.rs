//! What is counted of each table.

use serde::{Deserialize, Serialize};

/// What `ttl.stats` shows.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Counters {
    pub(crate) rows_deleted: i64,
    pub(crate) batches: i64,
    pub(crate) passes: i64,
    pub(crate) sub_passes: i64,
    pub(crate) partitions_dropped: i64,
    pub(crate) last_pass_at: i64,
    pub(crate) last_pass_ms: f64,
    /// When the oldest row on disk expired, or will; 0 = unknown.
    pub(crate) oldest_expiry: i64,
    pub(crate) backlog: i64,
    pub(crate) blocked_rows: i64,
    pub(crate) last_error_at: i64,
    /// When `ttl.reset_stats` was last called for it; 0 = never.
    pub(crate) reset_at: i64,
}

impl Counters {
    /// Adds another table's counters.
    pub(crate) fn add(&mut self, other: &Self) {
        self.rows_deleted += other.rows_deleted;
        self.batches += other.batches;
        self.passes += other.passes;
        self.sub_passes += other.sub_passes;
        self.partitions_dropped += other.partitions_dropped;
        if other.last_pass_at > self.last_pass_at {
            self.last_pass_at = other.last_pass_at;
            self.last_pass_ms = other.last_pass_ms;
        }
        self.reset_at = self.reset_at.max(other.reset_at);
    }

    /// Counts from zero. What is known of the present, and what happened last, stays.
    pub(super) fn reset(&mut self, now: i64) {
        *self = Self {
            rows_deleted: 0,
            batches: 0,
            passes: 0,
            sub_passes: 0,
            partitions_dropped: 0,
            reset_at: now,
            ..*self
        };
    }
}

//! Whether an empty partition may be dropped (M11): pure.

/// What is known of a partition's emptiness. It is lost with the server's shared memory: then the
/// time counts from the next look on.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) struct Emptiness {
    /// The partition's file, which TRUNCATE replaces; 0 = not seen yet.
    file: u32,
    /// Rows that workers had deleted from it when that file was seen first.
    deleted_before: i64,
    /// A worker has found expired rows in that file.
    held: bool,
    /// Since when it has stood empty and past its bound, by a clock that is never set; 0 = it does not.
    since: i64,
}

impl Emptiness {
    pub(in crate::worker) const fn new() -> Self {
        Self {
            file: 0,
            deleted_before: 0,
            held: false,
            since: 0,
        }
    }

    /// A look: the partition has this file, and so many rows have been deleted by workers, which
    /// `ttl.reset_stats` may have set to zero.
    pub(in crate::worker) fn look(&mut self, file: u32, rows_deleted: i64) {
        if self.file != file {
            *self = Self {
                file,
                deleted_before: rows_deleted,
                held: self.held && self.file == 0,
                since: 0,
            };
        }
        self.deleted_before = self.deleted_before.min(rows_deleted);
    }

    /// A worker has found expired rows in it.
    pub(in crate::worker) fn found_expired(&mut self) {
        self.held = true;
    }

    /// It holds a row, or is not past its bound.
    pub(in crate::worker) fn interrupt(&mut self) {
        self.since = 0;
    }

    /// It is empty and past its bound. Whether it may go: workers have found expired rows in it, or
    /// deleted some, or it has stood so for `age`.
    pub(in crate::worker) fn may_go(&mut self, rows_deleted: i64, now: i64, age: i64) -> bool {
        if self.since == 0 {
            self.since = now;
        }
        self.held || rows_deleted > self.deleted_before || now.saturating_sub(self.since) >= age
    }
}

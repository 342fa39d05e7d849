//! Whether an empty partition may be dropped (M11): pure.

/// What is known of a partition's emptiness. It is lost with the server's shared memory: then the
/// time counts from the next look on.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::worker) struct Emptiness {
    /// The partition's file, which TRUNCATE replaces; 0 = not seen yet.
    file: u32,
    /// A worker has found or deleted expired rows in that file.
    held: bool,
    /// Since when it has stood empty and past its bound, by a clock that is never set; 0 = it does not.
    since: i64,
}

impl Emptiness {
    /// The partition has this file.
    fn look(&mut self, file: u32) {
        if self.file != file {
            *self = Self {
                file,
                ..Self::default()
            };
        }
    }

    /// A worker has found expired rows in this file, or deleted some.
    pub(in crate::worker) fn found_expired(&mut self, file: u32) {
        self.look(file);
        self.held = true;
    }

    /// It holds a row, or is not past its bound.
    pub(in crate::worker) fn interrupt(&mut self) {
        self.since = 0;
    }

    /// It is empty and past its bound, and has this file. Whether it may go: workers have found expired
    /// rows in the file, or it has stood so for `age`.
    pub(in crate::worker) fn may_go(&mut self, file: u32, now: i64, age: i64) -> bool {
        self.look(file);
        if self.since == 0 {
            self.since = now;
        }
        self.held || now.saturating_sub(self.since) >= age
    }
}

//! What the index builder does next, and when it tries again (C21). Pure.

/// The first pause after an attempt that failed, in microseconds, and the longest.
const FIRST_PAUSE: i64 = 5_000_000;
const LONGEST_PAUSE: i64 = 3_600_000_000;

/// A statement, and the table that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::worker) struct Statement {
    pub(in crate::worker) table: u32,
    pub(in crate::worker) text: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(in crate::worker) enum BuildStep {
    /// A statement for which no session waits.
    Concurrently(Statement),
    /// One that needs that no partition lacks an index.
    Join(Statement),
    /// The constraint of this name: rows may violate it.
    Validate(String),
    /// The label is written.
    Record,
    Done,
}

/// The pause after a number of attempts.
pub(in crate::worker) fn pause(attempts: u32) -> i64 {
    let doubled = FIRST_PAUSE.saturating_mul(1 << attempts.saturating_sub(1).min(20));
    doubled.min(LONGEST_PAUSE)
}

/// How long a builder goes on while another owner waits for one, in microseconds: twice as long at
/// each attempt.
pub(in crate::worker) fn patience(attempts: u32) -> i64 {
    const FIRST: i64 = 600_000_000;
    FIRST.saturating_mul(1 << attempts.saturating_sub(1).min(10))
}

/// How the builder stands with a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BuildState {
    /// It is at the table.
    Building,
    /// It was not there yet, or had to wait for a lock.
    Waiting,
    /// The last attempt failed, so.
    Failed(String),
}

/// Whether a table is to have an index for deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuildNeed {
    /// Its rows do not expire by it.
    None,
    /// Its owner wants none to be built.
    Never,
    /// As soon as it has outgrown being read.
    Later,
    /// It is to have one, and no process builds it,
    Now,
    /// or which a builder is to build.
    Pending,
}

impl BuildNeed {
    /// `index_state` of `ttl.tables`.
    pub(crate) fn state(self, is_missing: bool, standing: BuildState) -> Option<String> {
        Some(match (self, is_missing, standing) {
            (Self::None, _, _) => return None,
            (_, _, BuildState::Building) => "building".to_owned(),
            (Self::Pending, _, BuildState::Waiting) => "waiting".to_owned(),
            (Self::Pending, _, BuildState::Failed(error)) => format!("failed: {error}"),
            (_, false, _) => "ready".to_owned(),
            (Self::Never, true, _) => "none".to_owned(),
            (Self::Later, true, _) => "not needed".to_owned(),
            (Self::Now, true, _) => "missing".to_owned(),
        })
    }
}

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

/// What is there to do at a table, as it stands in the catalogs.
#[derive(Debug, Default)]
pub(in crate::worker) struct Work {
    /// Whether TTL is on: else nothing is built.
    pub(in crate::worker) is_on: bool,
    /// Drops an index that was not completed.
    pub(in crate::worker) left_over: Vec<Statement>,
    /// Builds an index of a table or partition, concurrently.
    pub(in crate::worker) missing: Vec<Statement>,
    /// Joins the partitions' indexes; builds none.
    pub(in crate::worker) joined: Vec<Statement>,
    /// Validates a constraint.
    pub(in crate::worker) checks: Vec<Statement>,
    /// The label does not say what there is.
    pub(in crate::worker) is_label_stale: bool,
}

/// The next step.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::worker) enum BuildStep {
    /// A statement for which no session waits.
    Concurrently(Statement),
    /// One that needs that no partition lacks an index.
    Join(Statement),
    /// A constraint: rows may violate it.
    Validate(Statement),
    /// The label is written.
    Record,
    Done,
}

impl Work {
    /// The next step. Whatever has ended the builder in the middle, it begins with what that left
    /// behind.
    pub(in crate::worker) fn next(mut self) -> BuildStep {
        let first = |statements: &mut Vec<Statement>| {
            (!statements.is_empty()).then(|| statements.swap_remove(0))
        };
        if let Some(drop) = first(&mut self.left_over) {
            return BuildStep::Concurrently(drop);
        }
        if !self.is_on {
            return BuildStep::Done;
        }
        if let Some(create) = first(&mut self.missing) {
            return BuildStep::Concurrently(create);
        }
        if let Some(join) = first(&mut self.joined) {
            return BuildStep::Join(join);
        }
        if let Some(check) = first(&mut self.checks) {
            return BuildStep::Validate(check);
        }
        if self.is_label_stale {
            BuildStep::Record
        } else {
            BuildStep::Done
        }
    }
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

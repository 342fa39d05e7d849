//! The clock: what time it is, and the stamping of `_ts` (C1).

pub(crate) mod execution;
pub(crate) mod moment;
pub(crate) mod now;
pub(crate) mod parallel;
pub(crate) mod planner_hook;
mod stamp;

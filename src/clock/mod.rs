//! The clock: what time it is for a statement (C5, C13, C14).

pub(crate) mod execution;
pub(crate) mod moment;
pub(crate) mod now;
pub(crate) mod parallel;

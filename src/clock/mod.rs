//! The clock: what time it is for a statement (C5, C13, C14).

pub(crate) mod distributed;
pub(crate) mod execution;
pub(crate) mod held;
pub(crate) mod moment;
pub(crate) mod now;
pub(crate) mod statement_time;

/// Defines the setting by which parallel workers are given their query's time; once, at load.
pub(crate) fn init() {
    crate::pg::server::parallel::define(
        c"ttl.execution_time",
        c"The time by which a query judges rows, for its parallel workers.",
    );
}

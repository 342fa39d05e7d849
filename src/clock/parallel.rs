//! The time of a query in parallel workers. PostgreSQL passes them the statement's time only, so
//! this one travels as a setting. A `double` holds all microseconds until 2285.

use crate::pg::guc;

/// Defines the setting; once, at load.
pub(crate) fn init() {
    guc::define_for_workers(
        c"ttl.execution_time",
        c"The time by which a query judges rows, for its parallel workers.",
    );
}

/// Sets the time that workers of the running query are given; 0: no query runs.
#[inline]
pub(super) fn tell_workers(time: i64) {
    guc::tell_workers(time as f64);
}

/// The leader's time; `None` in a leader.
pub(super) fn leaders_time() -> Option<i64> {
    guc::leaders_number().map(|time| time as i64)
}

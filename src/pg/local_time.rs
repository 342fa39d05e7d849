//! Local time, by PostgreSQL's time zones.

use core::ffi::{c_int, c_long};
use pgrx::pg_sys::{self, pg_time_t, pg_tz};

/// 2000-01-01, from which timestamps count, in seconds since 1970.
const EPOCH: i64 = 946_684_800;
const MICROS_PER_SECOND: i64 = 1_000_000;

/// Local time while its difference from UTC is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Local {
    /// Local time less UTC, in seconds.
    pub(crate) offset: i64,
    /// When that changes next.
    pub(crate) until: Option<i64>,
}

/// Local time at this instant by `log_timezone`: the one zone that no database, role or session
/// changes.
pub(crate) fn of_server(instant: i64) -> Local {
    // SAFETY: set when the server starts, and never freed.
    unsafe { of_zone(pg_sys::log_timezone, instant) }
}

/// # Safety
/// A zone of PostgreSQL's, which it never frees, or null.
pub(crate) unsafe fn of_zone(zone: *const pg_tz, instant: i64) -> Local {
    let utc = Local {
        offset: 0,
        until: None,
    };
    if zone.is_null() {
        return utc;
    }
    let time: pg_time_t = instant.div_euclid(MICROS_PER_SECOND) + EPOCH;
    let (mut before, mut after): (c_long, c_long) = (0, 0);
    let (mut before_isdst, mut after_isdst): (c_int, c_int) = (0, 0);
    let mut boundary: pg_time_t = 0;
    // SAFETY: fills the variables; a zone as required of the caller.
    let found = unsafe {
        pg_sys::pg_next_dst_boundary(
            &raw const time,
            &raw mut before,
            &raw mut before_isdst,
            &raw mut boundary,
            &raw mut after,
            &raw mut after_isdst,
            zone,
        )
    };
    match found {
        0 | 1 => Local {
            offset: before,
            until: (found == 1 && boundary > time).then(|| {
                boundary
                    .saturating_sub(EPOCH)
                    .saturating_mul(MICROS_PER_SECOND)
            }),
        },
        // Beyond what zones tell.
        _ => utc,
    }
}

//! Local time, by PostgreSQL's time zones.

use crate::pg::abi::encoding;
use core::ffi::{c_int, c_long};
use core::ptr::NonNull;
use pgrx::pg_sys::{self, pg_time_t, pg_tz};

/// 2000-01-01, from which timestamps count, in seconds since 1970.
const EPOCH: i64 = 946_684_800;
const MICROS_PER_SECOND: i64 = 1_000_000;

/// Local time while its difference from UTC is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LocalDateTime {
    /// Local time less UTC, in seconds.
    pub(crate) offset: i64,
    /// When that changes next.
    pub(crate) until: Option<i64>,
}

/// A time zone, which PostgreSQL keeps as long as the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Zone(NonNull<pg_tz>);

impl Zone {
    /// The zone of that name, in any case, as `SET TimeZone` finds it; `None` if there is none, or if it
    /// counts leap seconds.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let name = encoding::to_server(name)?;
        // SAFETY: a C string; the zone is null or a valid one that is never freed.
        unsafe {
            let zone = NonNull::new(pg_sys::pg_tzset(name.as_ptr()))?;
            pg_sys::pg_tz_acceptable(zone.as_ptr()).then_some(Self(zone))
        }
    }

    /// That of the session's TimeZone.
    pub(crate) fn of_session() -> Option<Self> {
        // SAFETY: the setting's variable, null only before settings are initialized.
        NonNull::new(unsafe { pg_sys::session_timezone }).map(Self)
    }

    /// Its name, as PostgreSQL writes it.
    pub(crate) fn name(self) -> String {
        // SAFETY: a valid zone, whose name lives as long.
        unsafe { encoding::from_nullable(pg_sys::pg_get_timezone_name(self.0.as_ptr())) }
            .unwrap_or_default()
    }

    pub(crate) fn local(self, instant: i64) -> LocalDateTime {
        // SAFETY: PostgreSQL never frees a time zone that it has loaded.
        unsafe { of_zone(self.0.as_ptr(), instant) }
    }
}

/// Local time at this instant by `log_timezone`: the one zone that no database, role or session
/// changes.
pub(crate) fn of_server(instant: i64) -> LocalDateTime {
    // SAFETY: set when the server starts, and never freed.
    unsafe { of_zone(pg_sys::log_timezone, instant) }
}

/// # Safety
/// A zone of PostgreSQL's, which it never frees, or null.
pub(crate) unsafe fn of_zone(zone: *const pg_tz, instant: i64) -> LocalDateTime {
    let utc = LocalDateTime {
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
        0 | 1 => LocalDateTime {
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

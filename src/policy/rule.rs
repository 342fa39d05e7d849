//! TTL indexes: rows that expire by a date of their own (M1-M12).

use super::expiry::{END_TIMESTAMP, INFINITY, MICROS_PER_SECOND, MINUS_INFINITY};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// A TTL index, as the label names it.
///
/// The column and predicate are read from the index's catalog entry. The label has its name,
/// which REINDEX CONCURRENTLY and a restored dump keep, and not its OID, which they change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IndexRule {
    /// The index's name; it is in the table's schema.
    pub(crate) index: String,
    /// M1: number of seconds after its date at which a row expires.
    pub(crate) expire_after_seconds: i32,
    /// M13: the time zone of a date without one; `None` is UTC. As PostgreSQL names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) time_zone: Option<String>,
}

impl IndexRule {
    /// M1: 0 to 2147483647 seconds; 0 means "at the time in the column" (M2).
    pub(crate) fn check_seconds(value: i64) -> Option<i32> {
        i32::try_from(value).ok().filter(|&seconds| seconds >= 0)
    }

    /// M13: a name that PostgreSQL can look up. Whether there is such a zone, the server knows.
    pub(super) fn check_time_zone(&self) -> Result<()> {
        match &self.time_zone {
            Some(zone) if !is_zone_name(zone) => Err(Error::invalid(format!(
                "time_zone is \"{zone}\"; the name of a time zone has 1 to 63 ASCII characters without spaces"
            ))),
            _ => Ok(()),
        }
    }
}

/// Whether a time zone can have that name in a label.
pub(crate) fn is_zone_name(name: &str) -> bool {
    (1..=63).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
}

/// When a row expires by a TTL index: its date plus the seconds; [`INFINITY`] when it
/// never does.
///
/// `None` is NULL, an empty array, or one of NULLs (M3). M12: a sum past the end of
/// `timestamptz` is "never", and an infinite date is no date: such a row lives.
#[inline]
pub(crate) fn index_expiry(date: Option<i64>, seconds: i32) -> i64 {
    match date {
        None | Some(MINUS_INFINITY | INFINITY) => INFINITY,
        Some(_) if seconds < 0 => INFINITY,
        Some(date) => match date.checked_add(i64::from(seconds) * MICROS_PER_SECOND) {
            Some(expiry) if expiry < END_TIMESTAMP => expiry,
            _ => INFINITY,
        },
    }
}

/// Whether a row is live at `now` by a TTL index (M2).
#[inline]
pub(crate) fn is_live_by_index(date: Option<i64>, seconds: i32, now: i64) -> bool {
    let expiry = index_expiry(date, seconds);
    expiry == INFINITY || expiry > now
}

/// The instant at which a day begins in UTC. A day is counted from 2000-01-01, the two
/// extreme values being the infinities. A day that `timestamptz` does not reach is
/// [`INFINITY`] (M12).
#[inline]
pub(crate) fn instant_of_day(day: i32) -> i64 {
    const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
    match day {
        i32::MIN => MINUS_INFINITY,
        i32::MAX => INFINITY,
        day => match i64::from(day).checked_mul(MICROS_PER_DAY) {
            Some(instant) if instant < END_TIMESTAMP => instant,
            _ => INFINITY,
        },
    }
}

/// The last day that begins at or before an instant, in UTC.
pub(crate) fn day_of_instant(instant: i64) -> i32 {
    const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
    // An i64 of microseconds has 107 million days.
    i32::try_from(instant.div_euclid(MICROS_PER_DAY)).unwrap_or(i32::MAX)
}

/// M3: of an array the earliest date counts; NULLs do not.
pub(crate) fn earliest(dates: impl Iterator<Item = Option<i64>>) -> Option<i64> {
    dates.flatten().min()
}

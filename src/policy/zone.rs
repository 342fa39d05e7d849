//! Local time and instants: what a `timestamp` or `date` means in a time zone (M13).
//!
//! Local time is counted like an instant, in microseconds since 2000-01-01 00:00 on local clocks.
//! A zone is a function from an instant to the [`LocalTime`] in force then.

use super::expiry::{END_TIMESTAMP, INFINITY, MICROS_PER_SECOND, MINUS_INFINITY};
use super::rest::LocalTime;

const SECONDS_PER_DAY: i64 = 86_400;
const DAY: i64 = SECONDS_PER_DAY * MICROS_PER_SECOND;
/// Within so much of an instant, all changes of the clocks count for [`latest_local`] and its like:
/// more than the largest difference between local time and UTC, twice.
const NEAR: i64 = 16 * DAY;
/// No more changes are looked at: a zone has one or two a year.
const CHANGES: usize = 32;

/// Local times that have the same difference from UTC, and that difference in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SameOffset {
    /// The first of them that is known,
    from: i64,
    /// and the first that is none of them.
    until: i64,
    offset: i64,
}

impl SameOffset {
    /// Holds no local time.
    pub(crate) const NONE: Self = Self {
        from: 0,
        until: 0,
        offset: 0,
    };

    /// The instant that a local time means, if it is one of these.
    #[inline]
    pub(crate) fn instant(&self, local: i64) -> Option<i64> {
        (self.from <= local && local < self.until).then(|| local - self.offset)
    }

    /// All of both, if they are the same to the end.
    pub(crate) fn joined(self, other: Self) -> Self {
        let is_same = (self.until, self.offset) == (other.until, other.offset);
        Self {
            from: if is_same {
                self.from.min(other.from)
            } else {
                other.from
            },
            ..other
        }
    }
}

/// The instant that a local time means in a zone, as `AT TIME ZONE` has it. Where clocks are set
/// forward, a time that they skip counts by the former offset; where they are set back, a time that
/// they show twice is the second one. So a row never expires too soon.
///
/// An infinity stays what it is. A time outside the range of `timestamptz` is [`INFINITY`].
pub(crate) fn instant_of_local(local: i64, zone: impl Fn(i64) -> LocalTime) -> i64 {
    match local {
        INFINITY | MINUS_INFINITY => local,
        _ => in_range(unchecked_instant(local, zone).0),
    }
}

/// As [`instant_of_local`], for a finite local time within the range of `timestamptz`, with the local
/// times around it for which the same offset holds.
pub(crate) fn same_offset(local: i64, zone: impl Fn(i64) -> LocalTime) -> SameOffset {
    let (instant, until) = unchecked_instant(local, zone);
    let offset = local.saturating_sub(instant);
    // Every instant up to there must be a valid one.
    let end = END_TIMESTAMP.saturating_add(offset.min(0));
    SameOffset {
        from: local,
        until: until.min(end),
        offset,
    }
}

fn in_range(instant: i64) -> i64 {
    if instant < END_TIMESTAMP {
        instant
    } else {
        INFINITY
    }
}

/// The instant, and the first later local time that may have another offset.
fn unchecked_instant(local: i64, zone: impl Fn(i64) -> LocalTime) -> (i64, i64) {
    // A day before, no clock has shown this time yet; the next change decides.
    let former = zone(local.saturating_sub(DAY));
    let before = local.saturating_sub(micros(former.offset));
    let Some(change) = former.until else {
        return (before, i64::MAX);
    };
    let latter = zone(change);
    let after = local.saturating_sub(micros(latter.offset));
    let ends = [former.offset, latter.offset].map(|offset| change.saturating_add(micros(offset)));
    if before < change && after < change {
        // As long as the change is the next one after the day before.
        let until = ends[0].min(ends[1]).min(change.saturating_add(DAY));
        (before, until)
    } else if before >= change && after >= change {
        (after, local.saturating_add(1))
    } else {
        (before.max(after), local.saturating_add(1))
    }
}

pub(crate) fn local_of_instant(instant: i64, zone: impl Fn(i64) -> LocalTime) -> i64 {
    match instant {
        INFINITY | MINUS_INFINITY => instant,
        _ => instant.saturating_add(micros(zone(instant).offset)),
    }
}

/// No local time means an instant up to this one and is later than the result.
pub(crate) fn latest_local(instant: i64, zone: impl Fn(i64) -> LocalTime) -> i64 {
    let offsets = offsets_near(instant, instant, &zone);
    let offset = match offsets.as_slice() {
        // Clocks are set once: a skipped time is no earlier than the change, nor is one shown twice.
        [a, b] if a.abs().max(b.abs()) < SECONDS_PER_DAY => zone(instant).offset,
        several => several.iter().copied().max().unwrap_or(0),
    };
    instant.saturating_add(micros(offset))
}

/// No local time means an instant from this one on and is earlier than the result.
pub(crate) fn earliest_local(instant: i64, zone: impl Fn(i64) -> LocalTime) -> i64 {
    let offsets = offsets_near(instant, instant, &zone).into_iter();
    instant.saturating_add(micros(offsets.min().unwrap_or(0)))
}

/// No local time up to this one means a later instant than the result.
pub(crate) fn latest_instant(local: i64, zone: impl Fn(i64) -> LocalTime) -> i64 {
    if [INFINITY, MINUS_INFINITY].contains(&local) {
        return local;
    }
    let offsets = offsets_near(local, local, &zone).into_iter();
    in_range(local.saturating_sub(micros(offsets.min().unwrap_or(0))))
}

/// The offsets that hold at some time from [`NEAR`] `from` to [`NEAR`] `until`, in order.
fn offsets_near(from: i64, until: i64, zone: &impl Fn(i64) -> LocalTime) -> Vec<i64> {
    let mut at = from.saturating_sub(NEAR);
    let mut offsets = Vec::new();
    while offsets.len() < CHANGES {
        let time = zone(at);
        offsets.push(time.offset);
        match time.until {
            Some(change) if change > at && change <= until.saturating_add(NEAR) => at = change,
            _ => break,
        }
    }
    offsets
}

fn micros(seconds: i64) -> i64 {
    seconds.saturating_mul(MICROS_PER_SECOND)
}

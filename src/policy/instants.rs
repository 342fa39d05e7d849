//! Instants from what tables have: a date and a number of seconds, seconds since 1970, ISO 8601 text
//! (M14).
//!
//! They are computed for every row that is read: nothing here fails. What is no instant, or lies
//! outside the range of `timestamptz`, is `None`, and such a row does not expire.

use super::expiry::{END_TIMESTAMP, FIRST_TIMESTAMP, INFINITY, MICROS_PER_SECOND, MINUS_INFINITY};

const SECONDS_PER_DAY: i64 = 86_400;
const MICROS_PER_DAY: i64 = SECONDS_PER_DAY * MICROS_PER_SECOND;
/// 2000-01-01, from which instants count, in seconds since 1970.
const EPOCH: i64 = 946_684_800;

#[inline]
fn valid(instant: i64) -> Option<i64> {
    (FIRST_TIMESTAMP..END_TIMESTAMP)
        .contains(&instant)
        .then_some(instant)
}

/// A number of microseconds in the range of an instant.
#[inline]
fn whole(micros: f64) -> Option<i64> {
    // Both limits are exact, and NaN is in no range.
    let limit = END_TIMESTAMP as f64;
    (-limit..limit)
        .contains(&micros)
        .then_some(micros.round_ties_even() as i64)
}

/// A finite date plus microseconds.
#[inline]
fn add_micros(date: i64, micros: i64) -> Option<i64> {
    match date {
        INFINITY | MINUS_INFINITY => None,
        date => valid(date.checked_add(micros)?),
    }
}

/// A date plus a number of seconds.
#[inline]
pub(crate) fn add_seconds(date: i64, seconds: i64) -> Option<i64> {
    add_micros(date, seconds.checked_mul(MICROS_PER_SECOND)?)
}

/// A date plus a number of seconds, to the microsecond.
#[inline]
pub(crate) fn add_fractional_seconds(date: i64, seconds: f64) -> Option<i64> {
    add_micros(date, whole(seconds * MICROS_PER_SECOND as f64)?)
}

/// A date plus an interval without months. A day has 24 hours.
#[inline]
pub(crate) fn add_interval(date: i64, months: i32, days: i32, micros: i64) -> Option<i64> {
    // An infinite one, which PostgreSQL has since 17, has months.
    if months != 0 {
        return None;
    }
    let days = i64::from(days).checked_mul(MICROS_PER_DAY)?;
    add_micros(date, days.checked_add(micros)?)
}

/// What a number counts since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EpochUnit {
    Seconds,
    Milliseconds,
    Microseconds,
}

impl EpochUnit {
    /// The unit of that name, as `ttl.expire_after` takes it.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "s" | "second" | "seconds" => Some(Self::Seconds),
            "ms" | "millisecond" | "milliseconds" => Some(Self::Milliseconds),
            "us" | "microsecond" | "microseconds" => Some(Self::Microseconds),
            _ => None,
        }
    }

    pub(crate) const ALL: [Self; 3] = [Self::Seconds, Self::Milliseconds, Self::Microseconds];

    /// How many there are in a second.
    pub(crate) fn per_second(self) -> i64 {
        match self {
            Self::Seconds => 1,
            Self::Milliseconds => 1000,
            Self::Microseconds => MICROS_PER_SECOND,
        }
    }

    /// The function that makes an instant of it.
    pub(crate) fn function(self) -> &'static str {
        match self {
            Self::Seconds => "ttl.from_epoch",
            Self::Milliseconds => "ttl.from_epoch_ms",
            Self::Microseconds => "ttl.from_epoch_us",
        }
    }
}

/// The instant a number of units after 1970-01-01 00:00 UTC; there are `per_second` of them in a second.
#[inline]
pub(crate) fn from_epoch(units: i64, per_second: i64) -> Option<i64> {
    let micros = units.checked_mul(MICROS_PER_SECOND / per_second)?;
    valid(micros.checked_sub(EPOCH * MICROS_PER_SECOND)?)
}

/// As [`from_epoch`], to the microsecond. In seconds it is what `to_timestamp()` says.
#[inline]
pub(crate) fn from_fractional_epoch(units: f64, per_second: i64) -> Option<i64> {
    let since = units - (EPOCH * per_second) as f64;
    valid(whole(since * (MICROS_PER_SECOND / per_second) as f64)?)
}

/// The instant in a text such as `2026-11-25T10:00:00+01:00`: date, time and offset as ISO 8601 has them,
/// with or without separators, with "T" or a space between; the offset is "Z", hours, or hours and
/// minutes. `None` for any other text, also for one without an offset.
pub(crate) fn from_iso8601(text: &[u8]) -> Option<i64> {
    let mut text = Reader(text.trim_ascii());
    let year = text.digits(4)?;
    let extended = text.skip(b'-');
    let month = text.digits(2)?;
    if extended && !text.skip(b'-') {
        return None;
    }
    let day = days_since_2000(year, month, text.digits(2)?)?;
    if ![b'T', b't', b' '].into_iter().any(|it| text.skip(it)) {
        return None;
    }
    let hour = text.digits(2)?;
    let has_colons = text.skip(b':');
    let minute = text.digits(2)?;
    let has_seconds = if has_colons {
        text.skip(b':')
    } else {
        text.next_is_digit()
    };
    let second = if has_seconds { text.digits(2)? } else { 0 };
    let has_fraction = has_seconds && (text.skip(b'.') || text.skip(b','));
    let micros = if has_fraction { text.fraction()? } else { 0 };
    // 24:00 is the end of the day, and a leap second belongs to the next minute.
    let in_day = hour * 3600 + minute * 60 + second;
    let is_time = minute < 60 && second <= 60 && in_day <= SECONDS_PER_DAY;
    if !is_time || in_day == SECONDS_PER_DAY && micros > 0 {
        return None;
    }
    let offset = text.offset()?;
    let seconds = day * SECONDS_PER_DAY + in_day - offset;
    text.0
        .is_empty()
        .then(|| valid(seconds * MICROS_PER_SECOND + micros))?
}

/// The rest of a text.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn skip(&mut self, byte: u8) -> bool {
        let rest = self.0.strip_prefix(&[byte]);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn next_is_digit(&self) -> bool {
        self.0.first().is_some_and(u8::is_ascii_digit)
    }

    fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        digits.iter().try_fold(0, |number, digit| {
            digit
                .is_ascii_digit()
                .then(|| number * 10 + i64::from(digit - b'0'))
        })
    }

    /// Digits of a second after the point, as microseconds.
    fn fraction(&mut self) -> Option<i64> {
        let mut scale = 0.1;
        let mut fraction = 0.0;
        if !self.next_is_digit() {
            return None;
        }
        while self.next_is_digit() {
            fraction += scale * self.digits(1)? as f64;
            scale /= 10.0;
        }
        Some((fraction * MICROS_PER_SECOND as f64).round_ties_even() as i64)
    }

    /// Local time less UTC, in seconds.
    fn offset(&mut self) -> Option<i64> {
        if self.skip(b'Z') || self.skip(b'z') {
            return Some(0);
        }
        let sign = if self.skip(b'+') {
            1
        } else if self.skip(b'-') {
            -1
        } else {
            return None;
        };
        let hours = self.digits(2)?;
        let has_minutes = self.skip(b':') || self.next_is_digit();
        let minutes = if has_minutes { self.digits(2)? } else { 0 };
        (hours < 16 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
    }
}

/// Days since 2000-01-01; `None` if there is no such day.
fn days_since_2000(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => return None,
    };
    if year == 0 || !(1..=length).contains(&day) {
        return None;
    }
    // Years that begin in March have the leap day at their end.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap_days = year / 4 - year / 100 + year / 400;
    let in_year = (153 * month + 2) / 5 + day - 1;
    // 2000-03-01 is day 60.
    const MARCH_2000: i64 = 2000 * 365 + 2000 / 4 - 2000 / 100 + 2000 / 400;
    Some(year * 365 + leap_days + in_year - MARCH_2000 + 60)
}

//! A number of seconds as people write it: a number, or an interval (C17).

use super::document::int32_of_number_text;
use super::expiry::MICROS_PER_SECOND;

const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

/// Why what was written is no number of seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotSeconds {
    /// It has a fraction of a second.
    Fraction,
    /// It does not fit an int32.
    OutOfRange,
    /// NaN, or an infinity.
    NotFinite,
    /// An interval that goes backwards. The number -1 has a meaning of its own.
    Negative,
}

/// Reads a number without a fraction, however it is written; `None` if the text is no number.
pub(crate) fn seconds_of_number(text: &str) -> Option<Result<i32, NotSeconds>> {
    let text = text.trim_matches(|c: char| c.is_ascii_whitespace());
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_name = |name: &&str| unsigned.eq_ignore_ascii_case(name);
    if ["nan", "inf", "infinity"].iter().any(is_name) {
        return Some(Err(NotSeconds::NotFinite));
    }
    // Digits first: f64 would read more than SQL does.
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let rounded: f64 = text.parse().ok()?;
    let text = text.strip_prefix('+').unwrap_or(text);
    Some(int32_of_number_text(text).ok_or({
        if (f64::from(i32::MIN) - 1.0 < rounded) && (rounded < f64::from(i32::MAX) + 1.0) {
            NotSeconds::Fraction
        } else {
            NotSeconds::OutOfRange
        }
    }))
}

/// The days of a month and of a year, which have no fixed number: the most that they can have, so that
/// no row lives for less.
const DAYS_OF_MONTH: i64 = 31;
const DAYS_OF_YEAR: i64 = 366;

/// The seconds of an interval. A day has 24 hours: a row's life does not depend on a time zone. Months
/// and years count as [`DAYS_OF_MONTH`] and [`DAYS_OF_YEAR`].
pub(crate) fn seconds_of_interval(months: i32, days: i32, micros: i64) -> Result<i32, NotSeconds> {
    // Since PostgreSQL 17 an interval can be infinite: every part is the least or the greatest.
    let infinities = [
        (i32::MIN, i32::MIN, i64::MIN),
        (i32::MAX, i32::MAX, i64::MAX),
    ];
    if infinities.contains(&(months, days, micros)) {
        return Err(NotSeconds::NotFinite);
    }
    let (years, months) = (i64::from(months / 12), i64::from(months % 12));
    let micros = (i64::from(days) + years * DAYS_OF_YEAR + months * DAYS_OF_MONTH)
        .checked_mul(MICROS_PER_DAY)
        .and_then(|days| days.checked_add(micros))
        .ok_or(NotSeconds::OutOfRange)?;
    if micros < 0 {
        return Err(NotSeconds::Negative);
    }
    if micros % MICROS_PER_SECOND != 0 {
        return Err(NotSeconds::Fraction);
    }
    i32::try_from(micros / MICROS_PER_SECOND).map_err(|_| NotSeconds::OutOfRange)
}

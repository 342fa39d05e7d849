//! When a row expires (C2-C5, M12).
//!
//! Instants are PostgreSQL's `timestamptz`: microseconds since 2000-01-01 UTC,
//! with the two extreme values of an `i64` meaning the infinities.

/// `'infinity'::timestamptz`: never.
pub(crate) const INFINITY: i64 = i64::MAX;
/// `'-infinity'::timestamptz`.
pub(crate) const MINUS_INFINITY: i64 = i64::MIN;
/// The first instant that is no longer a valid `timestamptz` (year 294277).
pub(super) const END_TIMESTAMP: i64 = 9_223_371_331_200_000_000;
pub(super) const MICROS_PER_SECOND: i64 = 1_000_000;

/// How long a row lives after its last modification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ttl {
    /// The row does not expire.
    Never,
    /// The row expires this many seconds (at least 1) after `_ts`.
    Seconds(i32),
}

/// Whether a row may have this override (C3).
#[inline]
pub(crate) fn is_override(ttl: i32) -> bool {
    ttl == -1 || ttl > 0
}

/// The TTL of a row: its override, or else the table's default (C2, C3).
///
/// Without an override the row inherits; without a default rows that inherit do not expire. The
/// caller decides whether TTL is on at all (C4). An invalid value (0, below -1) makes the row
/// live: a bad value never deletes anything (M12).
#[inline]
pub(crate) fn effective_ttl(row_ttl: Option<i32>, default_ttl: Option<i32>) -> Ttl {
    match row_ttl.or(default_ttl) {
        Some(seconds) if seconds > 0 => Ttl::Seconds(seconds),
        _ => Ttl::Never,
    }
}

/// The instant at which a row expires; [`INFINITY`] if it never does.
///
/// A sum past the end of `timestamptz` is "never"; infinities stay as they are (M12). A row
/// without a `_ts` never expires.
#[inline]
pub(crate) fn expires_at(ts: Option<i64>, ttl: Ttl) -> i64 {
    match (ts, ttl) {
        (None, _) | (_, Ttl::Never) => INFINITY,
        (Some(MINUS_INFINITY), _) => MINUS_INFINITY,
        (Some(ts), Ttl::Seconds(seconds)) => {
            match ts.checked_add(i64::from(seconds) * MICROS_PER_SECOND) {
                Some(expiry) if expiry < END_TIMESTAMP => expiry,
                _ => INFINITY,
            }
        }
    }
}

/// The first `timestamptz` (4714 BC).
pub(crate) const FIRST_TIMESTAMP: i64 = -211_813_488_000_000_000;

/// A row's place in the index by which expired rows are found (C11), where rows that inherit the
/// default and rows that override it each have a range of their own: [`inheriting_key`] of `_ts`
/// or [`overriding_key`] of the instant at which the row expires. `None` if it never does,
/// whatever the default.
#[inline]
pub(crate) fn expiry_key(ts: Option<i64>, ttl: Option<i32>) -> Option<i64> {
    let ts = ts.filter(|&ts| ts != INFINITY)?;
    match ttl {
        None => Some(inheriting_key(ts)),
        Some(_) => {
            let expiry = expires_at(Some(ts), effective_ttl(ttl, None));
            (expiry != INFINITY).then(|| overriding_key(expiry))
        }
    }
}

/// The key of a row without an override, by its `_ts`: from 0 up. Instants after year 287000 have
/// the same.
#[inline]
pub(crate) fn inheriting_key(ts: i64) -> i64 {
    ts.saturating_sub(FIRST_TIMESTAMP).max(0)
}

/// The key of a row with an override, by the instant at which it expires: below 0.
#[inline]
pub(crate) fn overriding_key(expiry: i64) -> i64 {
    i64::MIN + inheriting_key(expiry)
}

/// Whether a row is live at `now`; it is expired from `_ts + ttl` on, inclusive (C5).
///
/// Equivalent to [`expires_at`], in fewer instructions, as it is asked for every row that is
/// read. Infinities come out right as the least and the greatest number.
#[inline]
pub(crate) fn is_live(ts: Option<i64>, ttl: Ttl, now: i64) -> bool {
    match (ts, ttl) {
        (Some(ts), Ttl::Seconds(seconds)) => ts > cutoff(now, seconds),
        _ => true,
    }
}

/// The newest `_ts` that is expired at `now` under a default of `seconds`: a row is live exactly
/// if its `_ts` is greater.
#[inline]
pub(crate) fn cutoff(now: i64, seconds: i32) -> i64 {
    now.saturating_sub(i64::from(seconds) * MICROS_PER_SECOND)
}

/// The `_ts` of a row that an UPDATE writes at `present`, a time to stamp with: the one that it has
/// if that is no older than `granularity` seconds (C16), nor than half of the row's own override,
/// so that a short-lived row is not left to expire although it was just written.
#[inline]
pub(crate) fn refreshed(
    ts: Option<i64>,
    row_ttl: Option<i32>,
    granularity: i32,
    present: i64,
) -> i64 {
    let seconds = match row_ttl {
        Some(ttl) if ttl > 0 => granularity.min(ttl / 2),
        _ => granularity,
    };
    let kept = ts.filter(|&ts| ts >= cutoff(present, seconds) && ts <= present);
    kept.unwrap_or(present)
}

/// The time with which a row is stamped (C1): the start of the client's statement, cut to whole
/// seconds. A statement that has run for a second or more, as a long function or procedure does,
/// uses the current time: its rows would otherwise be written old, or expired.
#[inline]
pub(crate) fn stamp(statement_start: i64, current: i64) -> i64 {
    let runs_for = current.saturating_sub(statement_start);
    let time = if runs_for < MICROS_PER_SECOND {
        statement_start
    } else {
        current
    };
    truncate_to_second(time)
}

/// Cuts an instant to whole seconds, downwards, as Cosmos's `_ts` is (C1).
#[inline]
pub(crate) fn truncate_to_second(ts: i64) -> i64 {
    if ts == INFINITY || ts == MINUS_INFINITY {
        return ts;
    }
    ts - ts.rem_euclid(MICROS_PER_SECOND)
}

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

/// The TTL that counts for a row: its override where it has one, else the
/// table's default (C2, C3).
///
/// `None` for the override means "inherit"; `None` for the default means that
/// there is no default, so that rows that inherit do not expire. Whether TTL
/// is on at all (C4) is decided by the caller. A value that the rules refuse
/// (0, below -1) makes the row live: a bad value never deletes anything (M12).
#[inline]
pub(crate) fn effective_ttl(row_ttl: Option<i32>, default_ttl: Option<i32>) -> Ttl {
    match row_ttl.or(default_ttl) {
        Some(seconds) if seconds > 0 => Ttl::Seconds(seconds),
        _ => Ttl::Never,
    }
}

/// The instant at which a row expires; [`INFINITY`] when it never does.
///
/// A sum past the end of `timestamptz` is "never"; the infinities stay what
/// they are (M12). A row without a `_ts` never expires.
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

/// Whether a row is alive at `now`; it is expired from `_ts + ttl` on,
/// inclusive (C5).
///
/// The same as asking [`expires_at`], in fewer instructions: asked for each row that is
/// read. The infinities come out right as the least and the greatest number.
#[inline]
pub(crate) fn is_live(ts: Option<i64>, ttl: Ttl, now: i64) -> bool {
    match (ts, ttl) {
        (Some(ts), Ttl::Seconds(seconds)) => ts > cutoff(now, seconds),
        _ => true,
    }
}

/// The newest `_ts` that is expired at `now` under a default of `seconds`:
/// a row lives exactly if its `_ts` is greater.
#[inline]
pub(crate) fn cutoff(now: i64, seconds: i32) -> i64 {
    now.saturating_sub(i64::from(seconds) * MICROS_PER_SECOND)
}

/// The time with which a row is stamped (C1): the start of the client's
/// statement, cut to whole seconds. A statement that has run for a second or
/// more when it comes to write, a long function or procedure above all, takes
/// the current time instead: its rows would be born old, or expired.
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

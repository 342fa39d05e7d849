//! M1 to M5, M12: TTL indexes: when a row expires by one.

use super::expiry::{END_TIMESTAMP, INFINITY, MICROS_PER_SECOND, MINUS_INFINITY};
use super::rule::*;
use proptest::prelude::*;

const SECOND: i64 = MICROS_PER_SECOND;

#[test]
fn m1_range_of_seconds() {
    for good in [0, 1, 3600, i64::from(i32::MAX)] {
        assert_eq!(
            IndexRule::check_seconds(good).map(i64::from),
            Some(good),
            "{good}"
        );
    }
    for bad in [-1, i64::from(i32::MAX) + 1, i64::MAX, i64::MIN] {
        assert_eq!(IndexRule::check_seconds(bad), None, "{bad}");
    }
}

#[test]
fn m2_expires_at_the_instant() {
    for (date, seconds, now, live) in [
        (0, 0, 0, false),
        (1, 0, 0, true),
        (0, 30, 30 * SECOND - 1, true),
        (0, 30, 30 * SECOND, false),
    ] {
        assert_eq!(
            is_live_by_index(Some(date), seconds, now),
            live,
            "{date} {seconds} {now}"
        );
    }
}

#[test]
fn m3_the_earliest_counts_and_nulls_do_not() {
    assert_eq!(earliest([].into_iter()), None);
    assert_eq!(earliest([None, None].into_iter()), None);
    assert_eq!(earliest([Some(5), None, Some(3)].into_iter()), Some(3));
    assert!(is_live_by_index(None, 0, i64::MAX - 1));
}

#[test]
fn m12_infinite_dates_and_overflows_live() {
    let late = END_TIMESTAMP - 1;
    for date in [MINUS_INFINITY, INFINITY, late] {
        assert!(is_live_by_index(Some(date), 1, late), "{date}");
    }
    // The very last instants are computed right.
    assert!(!is_live_by_index(Some(late), 0, late));
    assert!(!is_live_by_index(
        Some(late - i64::from(i32::MAX) * SECOND),
        i32::MAX,
        late
    ));
    assert!(is_live_by_index(Some(0), -1, late));
}

#[test]
fn m12_days_before_1970_after_2038_and_beyond_the_type() {
    assert_eq!(instant_of_day(0), 0);
    assert_eq!(instant_of_day(-11_323), -11_323 * 86_400 * SECOND);
    assert_eq!(instant_of_day(14_245), 14_245 * 86_400 * SECOND);
    assert_eq!(instant_of_day(i32::MIN), MINUS_INFINITY);
    assert_eq!(instant_of_day(i32::MAX), INFINITY);
    // 5874897-12-31, the last date there is.
    assert_eq!(instant_of_day(2_145_031_948), INFINITY);
    // 294276-12-31 is the last day of timestamptz.
    assert_eq!(instant_of_day(106_751_982), 106_751_982 * 86_400 * SECOND);
    assert_eq!(instant_of_day(106_751_991), INFINITY);
}

proptest! {
    /// M2: expiry is the sum, in 128 bits, wherever timestamptz reaches.
    #[test]
    fn m2_expiry_is_the_sum(date in any::<i64>(), seconds in 0..=i32::MAX) {
        let sum = i128::from(date) + i128::from(seconds) * i128::from(SECOND);
        let infinite = [MINUS_INFINITY, INFINITY].contains(&date);
        let expected = if infinite || sum >= i128::from(END_TIMESTAMP) { i128::from(INFINITY) } else { sum };
        prop_assert_eq!(i128::from(index_expiry(Some(date), seconds)), expected);
    }

    /// M2: the shorter time wins, and a later date never expires earlier.
    #[test]
    fn m2_monotonous(date in -1_000_000_000_000_000i64..1_000_000_000_000_000, later in 0i64..1_000_000_000,
                     seconds in 0..=i32::MAX, now in any::<i64>()) {
        let live = is_live_by_index(Some(date), seconds, now);
        prop_assert!(!live || is_live_by_index(Some(date + later), seconds, now));
    }

    /// Days and instants agree.
    #[test]
    fn m2_day_of_instant(instant in -211_813_488_000_000_000i64..END_TIMESTAMP) {
        let day = day_of_instant(instant);
        prop_assert!(instant_of_day(day) <= instant);
        prop_assert!(instant_of_day(day + 1) > instant);
    }
}

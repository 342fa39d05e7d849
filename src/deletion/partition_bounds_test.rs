//! M11: when a partition's time has passed.

use super::partition_bounds::{is_past, is_past_by_index};
use crate::policy::{effective_ttl, is_live, stamp};
use proptest::prelude::*;

const SECOND: i64 = 1_000_000;
const NOW: i64 = 800_000_000 * SECOND;

#[test]
fn m11_expired_as_a_whole() {
    let newest = NOW - 60 * SECOND;
    assert!(is_past(newest, Some(60), NOW));
    assert!(!is_past(newest + 1, Some(60), NOW));
    assert!(!is_past(newest, Some(61), NOW));
}

/// Off, no default, and values that the rules refuse: nothing expires by the default.
#[test]
fn m11_never_without_a_default() {
    for default in [None, Some(-1), Some(0), Some(i32::MIN)] {
        assert!(!is_past(0, default, NOW), "{default:?}");
    }
}

/// The partition of the present stays, however short the rows' life.
#[test]
fn m11_not_the_present() {
    assert!(!is_past(NOW - 5 * SECOND, Some(1), NOW));
    assert!(is_past(NOW - 11 * SECOND, Some(1), NOW));
}

#[test]
fn m11_extremes() {
    for default in [1, 60, i32::MAX] {
        assert!(!is_past(i64::MAX, Some(default), NOW));
        assert!(!is_past(i64::MAX - 1, Some(default), i64::MAX));
        assert!(!is_past(0, Some(default), i64::MIN));
        assert!(is_past(i64::MIN, Some(default), NOW));
    }
}

proptest! {
    /// Whatever `ts` a row in there has: it is expired, and not the present's.
    #[test]
    fn m11_no_live_row_and_no_new_one(
        newest in any::<i64>(), older_by in 0i64.., default in any::<i32>(),
        now in 0i64..1_000_000_000_000_000_000, started in 0i64..SECOND,
    ) {
        if is_past(newest, Some(default), now) {
            let ts = newest.saturating_sub(older_by);
            prop_assert!(!is_live(Some(ts), effective_ttl(None, Some(default)), now));
            prop_assert!(stamp(now - started, now) > newest);
        }
    }

    /// Once past, past for ever.
    #[test]
    fn m11_monotonous(newest in any::<i64>(), default in 1i32.., now in any::<i64>(), later in 0i64..) {
        if is_past(newest, Some(default), now) {
            prop_assert!(is_past(newest, Some(default), now.saturating_add(later)));
        }
    }
}

/// M11, M12: by a TTL index, 0 seconds and dates that never expire included.
#[test]
fn m11_expired_as_a_whole_by_an_index() {
    let margin = 10 * SECOND;
    assert!(is_past_by_index(NOW - margin, 0, NOW));
    assert!(!is_past_by_index(NOW - margin + 1, 0, NOW));
    assert!(is_past_by_index(NOW - margin - 60 * SECOND, 60, NOW));
    assert!(!is_past_by_index(NOW - margin - 60 * SECOND, 61, NOW));
    for never in [i64::MIN, i64::MAX, i64::MAX - 1] {
        assert!(!is_past_by_index(never, 0, NOW), "{never}");
    }
    assert!(!is_past_by_index(NOW - 60 * SECOND, -1, NOW));
}

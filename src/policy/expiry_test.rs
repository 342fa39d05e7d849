//! C2, C3, C5, M12: the matrix, and the arithmetic.

use super::expiry::*;
use proptest::prelude::*;

const SECOND: i64 = 1_000_000;
const END: i64 = 9_223_371_331_200_000_000;

/// Is a row gone 30 s after its last write?
fn gone_after_30(row: Option<i32>, default: Option<i32>) -> bool {
    !is_live(Some(0), effective_ttl(row, default), 30 * SECOND)
}

/// C2, C3, C5: the rows of the matrix with TTL on. ("Off" is the caller's: C4.)
#[test]
fn c2_c3_matrix() {
    let overrides = [None, Some(-1), Some(30), Some(31)];
    let expected = [
        (Some(-1), [false, false, true, false]),
        (Some(30), [true, false, true, false]),
        (Some(31), [false, false, true, false]),
    ];
    for (default, gone) in expected {
        for (row, gone) in overrides.into_iter().zip(gone) {
            assert_eq!(
                gone_after_30(row, default),
                gone,
                "default {default:?}, row {row:?}"
            );
        }
    }
}

proptest! {
    /// C11: a sweep finds each expired row in the range of its kind, and no other kind there.
    #[test]
    fn c11_expiry_key(
        ts in prop_oneof![any::<i64>(), -1000i64..1000, Just(MINUS_INFINITY), END - 1000..END],
        row_ttl in proptest::option::of(prop_oneof![any::<i32>(), 1i32..10]),
        default in prop_oneof![1i32..10, Just(i32::MAX)],
        now in prop_oneof![-1_000_000_000i64..1_000_000_000, 0..END],
    ) {
        let key = expiry_key(Some(ts), row_ttl);
        let reached = match row_ttl {
            None => inheriting_key(cutoff(now, default)),
            Some(_) => overriding_key(now),
        };
        let in_range = key.is_some_and(|key| (key >= 0) == row_ttl.is_none() && key <= reached);
        let is_expired = !is_live(Some(ts), effective_ttl(row_ttl, Some(default)), now);
        prop_assert!(in_range || !is_expired, "{key:?} {reached}");
        // Beyond these years keys are the same.
        if ts > -200_000_000_000_000_000 && ts < 9_000_000_000_000_000_000 {
            prop_assert_eq!(in_range, is_expired);
        }
        prop_assert!(inheriting_key(ts) >= 0 && overriding_key(ts) < 0);
    }

    /// C16: what was written lives for `ttl - granularity - 1` to `ttl` seconds, with an override
    /// for half of it at least; and `_ts` never comes from the future.
    #[test]
    fn c16_refreshed(
        age in -100_000i64..100_000, default in 2i32..10_000, part in 0.0f64..=0.5,
        row_ttl in proptest::option::of(prop_oneof![Just(-1), 1i32..10_000]), fraction in 0i64..SECOND,
    ) {
        let granularity = (f64::from(default) * part) as i32;
        let modified = 1_000_000 * SECOND + fraction;
        let present = truncate_to_second(modified);
        let ts = refreshed(Some(present - age * SECOND), row_ttl, granularity, present);
        prop_assert!(ts == present || ts == present - age * SECOND);
        prop_assert!(ts <= present);
        if let Ttl::Seconds(ttl) = effective_ttl(row_ttl, Some(default)) {
            let lives = expires_at(Some(ts), Ttl::Seconds(ttl)) - modified;
            let shorter = i64::from(granularity.min(ttl / 2)) + 1;
            prop_assert!(lives <= i64::from(ttl) * SECOND);
            prop_assert!(lives > (i64::from(ttl) - shorter) * SECOND);
        }
        let (recent, old) = (i64::from(granularity) / 2, i64::from(granularity) + 1);
        if row_ttl.is_none() {
            let kept = present - recent * SECOND;
            prop_assert_eq!(refreshed(Some(kept), None, granularity, present), kept);
            prop_assert_eq!(refreshed(Some(present - old * SECOND), None, granularity, present), present);
        }
        prop_assert_eq!(refreshed(None, row_ttl, granularity, present), present);
        prop_assert_eq!(refreshed(Some(i64::MAX), row_ttl, granularity, present), present);
        prop_assert_eq!(refreshed(Some(i64::MIN), row_ttl, granularity, present), present);
    }
}

/// C5: inclusive, to the microsecond.
#[test]
fn c5_inclusive() {
    let ttl = Ttl::Seconds(30);
    assert!(is_live(Some(0), ttl, 30 * SECOND - 1));
    assert!(!is_live(Some(0), ttl, 30 * SECOND));
    assert!(!is_live(Some(0), ttl, 30 * SECOND + 1));
}

/// M12: the infinities, the ends of timestamptz and values the rules refuse.
#[test]
fn m12_bad_values_never_delete() {
    let now = 800_000_000 * SECOND;
    let max = Ttl::Seconds(i32::MAX);
    assert!(is_live(None, Ttl::Seconds(1), now));
    assert!(is_live(Some(INFINITY), Ttl::Seconds(1), now));
    assert_eq!(expires_at(Some(INFINITY), max), INFINITY);
    assert_eq!(expires_at(Some(MINUS_INFINITY), max), MINUS_INFINITY);
    assert!(!is_live(Some(MINUS_INFINITY), max, now));
    assert_eq!(expires_at(Some(END - 1), Ttl::Seconds(1)), INFINITY);
    assert_eq!(expires_at(Some(i64::MAX - 1), max), INFINITY);
    for bad in [0, -2, i32::MIN] {
        assert_eq!(effective_ttl(Some(bad), Some(30)), Ttl::Never);
        assert_eq!(effective_ttl(None, Some(bad)), Ttl::Never);
    }
    assert_eq!(cutoff(i64::MIN + 5, i32::MAX), i64::MIN);
}

/// C1: the statement's start, unless the statement has been running for long.
#[test]
fn c1_stamp() {
    let start = 100 * SECOND + 7;
    assert_eq!(stamp(start, start), 100 * SECOND);
    assert_eq!(stamp(start, start + SECOND - 1), 100 * SECOND);
    assert_eq!(stamp(start, start + SECOND), 101 * SECOND);
    assert_eq!(stamp(start, start + 3600 * SECOND), 3700 * SECOND);
    // A clock that was set back does not make rows older.
    assert_eq!(stamp(start, start - 50 * SECOND), 100 * SECOND);
}

/// C1: whole seconds, downwards, also before 2000.
#[test]
fn c1_whole_seconds() {
    assert_eq!(truncate_to_second(1_999_999), SECOND);
    assert_eq!(truncate_to_second(-1), -SECOND);
    assert_eq!(truncate_to_second(INFINITY), INFINITY);
    assert_eq!(truncate_to_second(MINUS_INFINITY), MINUS_INFINITY);
}

proptest! {
    /// C5 against arithmetic that cannot overflow.
    #[test]
    fn c5_agrees_with_wide_arithmetic(
        ts in any::<i64>(), row in proptest::option::of(any::<i32>()),
        default in proptest::option::of(any::<i32>()), now in -300_000_000_000_000_000i64..END,
    ) {
        let live = is_live(Some(ts), effective_ttl(row, default), now);
        let seconds = row.or(default);
        let expected = match seconds {
            Some(s) if s > 0 && ts == i64::MIN => false,
            Some(s) if s > 0 && ts != i64::MAX => {
                let expiry = i128::from(ts) + i128::from(s) * 1_000_000;
                expiry >= i128::from(END) || expiry > i128::from(now)
            }
            _ => true,
        };
        prop_assert_eq!(live, expected);
    }

    /// The comparison with a cut-off, which prunes partitions, is the same rule.
    #[test]
    fn cutoff_is_the_same_rule(ts in any::<i64>(), seconds in 1i32.., now in 0i64..1_000_000_000_000_000_000) {
        prop_assert_eq!(is_live(Some(ts), Ttl::Seconds(seconds), now), ts > cutoff(now, seconds));
    }

    /// An expiry is a valid timestamptz, and never before `_ts`.
    #[test]
    fn expiry_is_valid(ts in -211_813_488_000_000_000i64..END, seconds in 1i32..) {
        let expiry = expires_at(Some(ts), Ttl::Seconds(seconds));
        prop_assert!(expiry > ts && (expiry < END || expiry == INFINITY));
    }

    /// C1: cutting never goes forward and loses less than a second.
    #[test]
    fn c1_truncation(ts in -211_813_488_000_000_000i64..END) {
        let cut = truncate_to_second(ts);
        prop_assert!(cut <= ts && ts - cut < 1_000_000 && cut % 1_000_000 == 0);
        prop_assert_eq!(truncate_to_second(cut), cut);
    }
}

#[test]
fn overrides_are_minus_one_or_positive() {
    for (ttl, expected) in [
        (i32::MIN, false),
        (-2, false),
        (-1, true),
        (0, false),
        (1, true),
        (i32::MAX, true),
    ] {
        assert_eq!(is_override(ttl), expected, "{ttl}");
    }
}

//! M14: instants from other columns.

use super::expiry::{END_TIMESTAMP, FIRST_TIMESTAMP, INFINITY, MINUS_INFINITY};
use super::instants::*;
use proptest::prelude::*;

const SECOND: i64 = 1_000_000;
const EPOCH: i64 = 946_684_800;

#[test]
fn a_date_plus_seconds() {
    assert_eq!(add_seconds(5, 3), Some(5 + 3 * SECOND));
    assert_eq!(add_seconds(5, -3), Some(5 - 3 * SECOND));
    assert_eq!(add_fractional_seconds(5, 1.5), Some(5 + SECOND * 3 / 2));
    assert_eq!(add_fractional_seconds(0, 0.000_000_4), Some(0));
    assert_eq!(add_interval(5, 0, 1, 2), Some(5 + 86_400 * SECOND + 2));
    for date in [INFINITY, MINUS_INFINITY] {
        assert_eq!(add_seconds(date, 1), None);
        assert_eq!(add_fractional_seconds(date, 1.0), None);
        assert_eq!(add_interval(date, 0, 0, 1), None);
    }
    for seconds in [i64::MAX, i64::MIN, END_TIMESTAMP / SECOND] {
        assert_eq!(add_seconds(0, seconds), None, "{seconds}");
    }
    for seconds in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, 9.3e12] {
        assert_eq!(add_fractional_seconds(0, seconds), None, "{seconds}");
    }
    // Months have no fixed number of days; an infinite interval has months.
    assert_eq!(add_interval(0, 1, 0, 0), None);
    assert_eq!(add_interval(0, i32::MAX, i32::MAX, i64::MAX), None);
    assert_eq!(add_interval(0, 0, i32::MAX, i64::MAX), None);
    assert_eq!(add_seconds(END_TIMESTAMP - 1, 0), Some(END_TIMESTAMP - 1));
    assert_eq!(add_interval(END_TIMESTAMP - 1, 0, 0, 1), None);
    assert_eq!(add_interval(FIRST_TIMESTAMP, 0, 0, -1), None);
}

#[test]
fn since_1970() {
    assert_eq!(from_epoch(EPOCH, 1), Some(0));
    assert_eq!(from_epoch(EPOCH * 1000 + 1, 1000), Some(1000));
    assert_eq!(from_epoch(EPOCH * SECOND + 1, SECOND), Some(1));
    assert_eq!(
        from_fractional_epoch(EPOCH as f64 + 0.25, 1),
        Some(SECOND / 4)
    );
    assert_eq!(
        from_fractional_epoch(EPOCH as f64 * 1000.0 + 0.5, 1000),
        Some(500)
    );
    for bad in [i64::MAX, i64::MIN] {
        assert_eq!(from_epoch(bad, 1), None);
        assert_eq!(from_epoch(bad, 1000), None);
    }
    // Microseconds reach that far.
    assert_eq!(
        from_epoch(i64::MAX, SECOND),
        Some(i64::MAX - EPOCH * SECOND)
    );
    assert_eq!(from_epoch(i64::MIN, SECOND), None);
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e20, -1e20] {
        assert_eq!(from_fractional_epoch(bad, 1), None);
        assert_eq!(from_fractional_epoch(bad, 1000), None);
    }
}

#[test]
fn iso8601() {
    let at = |text: &str| from_iso8601(text.as_bytes());
    assert_eq!(at("2000-01-01T00:00:00Z"), Some(0));
    assert_eq!(at("1970-01-01T00:00:00Z"), Some(-EPOCH * SECOND));
    let noon = 12 * 3600 * SECOND;
    for text in [
        "2000-01-01T12:00:00+00:00",
        "2000-01-01 12:00Z",
        "20000101T120000Z",
        "20000101T1200Z",
        " 2000-01-01t13:00:00.000+01 ",
        "2000-01-01T06:30:00-05:30",
        "2000-01-02T02:00:00+1400",
        "1999-12-31T24:00:00-12:00",
        "2000-01-01T11:59:60Z",
    ] {
        assert_eq!(at(text), Some(noon), "{text}");
    }
    assert_eq!(at("2000-01-01T12:00:00.5Z"), Some(noon + SECOND / 2));
    assert_eq!(at("2000-01-01T12:00:00,123456789Z"), Some(noon + 123_457));
    assert!(at("2024-02-29T00:00:00Z").is_some());
    assert!(at("9999-12-31T23:59:59.999999Z").is_some());
    for text in [
        "",
        "Z",
        "never",
        "2000-01-01",
        "2000-01-01T12:00:00",
        "2000-01-01T12Z",
        "2000-01-01T12:00:00.Z",
        "2000-01-01T12:00:00Z+01",
        "2000-01-01T12:00:00Zx",
        "2000-01-01T12:00:00+1",
        "2000-01-01T12:00:00+16",
        "2000-01-01T12:00:00+01:60",
        "2000-01-01T24:00:01Z",
        "2000-01-01T24:00:00.1Z",
        "2000-01-01T12:60:00Z",
        "2000-01-01T12:00:61Z",
        "2000-0101T12:00:00Z",
        "2000-13-01T12:00:00Z",
        "2000-00-01T12:00:00Z",
        "2023-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2000-04-31T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "+2000-01-01T00:00:00Z",
        "2000-01-01T12:00:00\u{2212}01:00",
        "infinity",
    ] {
        assert_eq!(at(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn nothing_fails(date in any::<i64>(), seconds in any::<i64>(), double in any::<f64>(), months in 0..2i32, days in any::<i32>(), text in proptest::collection::vec(any::<u8>(), 0..40)) {
        let all = [
            add_seconds(date, seconds),
            add_fractional_seconds(date, double),
            add_interval(date, months, days, seconds),
            from_epoch(seconds, 1),
            from_epoch(seconds, 1000),
            from_epoch(seconds, SECOND),
            from_fractional_epoch(double, 1),
            from_fractional_epoch(double, 1000),
            from_iso8601(&text),
        ];
        for instant in all.into_iter().flatten() {
            prop_assert!((FIRST_TIMESTAMP..END_TIMESTAMP).contains(&instant));
        }
    }

    /// All forms agree on whole seconds.
    #[test]
    fn forms_agree(date in -1_000_000_000_000_000i64..1_000_000_000_000_000, seconds in -3_000_000_000i64..3_000_000_000) {
        let sum = add_seconds(date, seconds);
        prop_assert_eq!(sum, add_fractional_seconds(date, seconds as f64));
        prop_assert_eq!(sum, add_interval(date, 0, 0, seconds * SECOND));
        let instant = from_epoch(seconds, 1);
        prop_assert_eq!(instant, from_epoch(seconds * 1000, 1000));
        prop_assert_eq!(instant, from_epoch(seconds * SECOND, SECOND));
        prop_assert_eq!(instant, from_fractional_epoch(seconds as f64, 1));
        prop_assert_eq!(instant, from_fractional_epoch(seconds as f64 * 1000.0, 1000));
    }

    /// Texts that are nearly right.
    #[test]
    fn near_texts(text in "[12]0[02][0-9]-?[01][0-9]-?[0-3][0-9][T ][0-2][0-9]:?[0-6][0-9](:?[0-6][0-9](\\.[0-9]{0,9})?)?(Z|[+-][01][0-9](:?[0-6][0-9])?)?") {
        let _ = from_iso8601(text.as_bytes());
    }
}

//! C17: seconds as numbers and as intervals.

use super::NotSeconds::{Fraction, Negative, NotFinite, OutOfRange};
use super::{seconds_of_interval, seconds_of_number};
use proptest::prelude::*;

const DAY: i64 = 86_400_000_000;

#[test]
fn c17_numbers() {
    for (text, read) in [
        ("1800", Ok(1800)),
        (" 1800\n", Ok(1800)),
        ("+1800", Ok(1800)),
        ("1800.000", Ok(1800)),
        ("1.8e3", Ok(1800)),
        ("1.8E+03", Ok(1800)),
        ("5.", Ok(5)),
        ("-1", Ok(-1)),
        ("0", Ok(0)),
        ("-0", Ok(0)),
        ("2147483647", Ok(i32::MAX)),
        ("-2147483648", Ok(i32::MIN)),
        ("0.5", Err(Fraction)),
        (".5", Err(Fraction)),
        ("1.00000000000000000001", Err(Fraction)),
        ("2147483647.5", Err(Fraction)),
        ("1e-400", Err(Fraction)),
        ("2147483648", Err(OutOfRange)),
        ("-2147483649", Err(OutOfRange)),
        ("1e400", Err(OutOfRange)),
        ("9223372036854775808", Err(OutOfRange)),
        ("NaN", Err(NotFinite)),
        ("-Infinity", Err(NotFinite)),
        ("inf", Err(NotFinite)),
    ] {
        assert_eq!(seconds_of_number(text), Some(read), "{text}");
    }
    for text in [
        "",
        " ",
        "-",
        ".",
        "30 minutes",
        "1:30",
        "P1D",
        "@ 5 s",
        "infinite",
        "1_0",
        "0x10",
        "--1",
        "+-1",
        "1e",
        "- 1",
        "1 2",
        "é",
    ] {
        assert_eq!(seconds_of_number(text), None, "{text}");
    }
}

#[test]
fn c17_intervals() {
    for ((months, days, micros), read) in [
        ((0, 0, 1_800_000_000), Ok(1800)),
        ((0, 0, 0), Ok(0)),
        ((0, 7, 0), Ok(604_800)),
        ((0, 2, -DAY), Ok(86_400)),
        ((0, -1, DAY + 5_000_000), Ok(5)),
        ((0, 24_855, 11_647_000_000), Ok(i32::MAX)),
        ((0, 24_855, 11_648_000_000), Err(OutOfRange)),
        ((0, 0, i64::MAX / 1_000_000 * 1_000_000), Err(OutOfRange)),
        ((0, i32::MAX, i64::MAX), Err(OutOfRange)),
        ((0, 0, 1_500_000), Err(Fraction)),
        ((0, 0, 1), Err(Fraction)),
        ((1, 0, 0), Ok(31 * 86_400)),
        ((-1, 32, 0), Ok(86_400)),
        ((-1, 0, 0), Err(Negative)),
        ((12, 0, 0), Ok(366 * 86_400)),
        ((25, 1, 1_000_000), Ok((2 * 366 + 31 + 1) * 86_400 + 1)),
        ((12 * 67, 0, 0), Ok(67 * 366 * 86_400)),
        ((12 * 69, 0, 0), Err(OutOfRange)),
        ((0, 0, -1_000_000), Err(Negative)),
        ((0, -1, 0), Err(Negative)),
        ((i32::MAX, i32::MAX, i64::MAX), Err(NotFinite)),
        ((i32::MIN, i32::MIN, i64::MIN), Err(NotFinite)),
    ] {
        assert_eq!(
            seconds_of_interval(months, days, micros),
            read,
            "{months} {days} {micros}"
        );
    }
}

proptest! {
    /// Every whole number, however it is written, and every interval of so many seconds.
    #[test]
    fn c17_round_trip(seconds in any::<i32>(), days in -1000..1000) {
        prop_assert_eq!(seconds_of_number(&seconds.to_string()), Some(Ok(seconds)));
        prop_assert_eq!(seconds_of_number(&format!("{seconds}.0")), Some(Ok(seconds)));
        let micros = i64::from(seconds) * 1_000_000 - i64::from(days) * DAY;
        let expected = if seconds < 0 { Err(Negative) } else { Ok(seconds) };
        prop_assert_eq!(seconds_of_interval(0, days, micros), expected);
    }

    /// Nothing is taken for another number, and nothing fails.
    #[test]
    fn c17_any_double(value in any::<f64>()) {
        match seconds_of_number(&value.to_string()) {
            Some(Ok(seconds)) => prop_assert_eq!(f64::from(seconds), value),
            other => prop_assert!(matches!(other, Some(Err(_)))),
        }
    }

    #[test]
    fn c17_any_text(text in ".{0,20}", months in any::<i32>(), days in any::<i32>(), micros in any::<i64>()) {
        let _ = seconds_of_number(&text);
        let _ = seconds_of_interval(months, days, micros);
    }
}

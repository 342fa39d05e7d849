//! C29, C30: pauses and windows.

use super::Policy;
use super::expiry::{INFINITY, MICROS_PER_SECOND};
use super::rest::{LocalTime, PauseEnd, Rest, Window};

const MINUTE: i64 = 60 * MICROS_PER_SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

fn window(text: &str) -> Window {
    Window::parse(text).unwrap()
}

#[test]
fn windows_are_read_and_written() {
    for text in ["22:00-06:00", "00:00-00:01", "23:59-00:00", "09:30-17:45"] {
        assert_eq!(window(text).to_string(), text);
    }
    assert_eq!(window("22:00 - 24:00").to_string(), "22:00-00:00");
    for text in [
        "",
        "22:00",
        "22-06",
        "22:00-22:00",
        "00:00-24:00",
        "24:01-06:00",
        "22:60-06:00",
        "+2:00-06:00",
        "2:00-6:00",
        "22:00-06:00-07:00",
        "22:00:00-06:00:00",
        "-22:00-06:00",
        "22:00–06:00",
        "2２:00-06:00",
    ] {
        assert!(Window::parse(text).is_err(), "{text}");
    }
}

/// A zone with a change of clocks: `before`, and from `at` on `after`, in minutes.
fn zone(before: i64, at: i64, after: i64) -> impl Fn(i64) -> LocalTime {
    move |instant| {
        if instant < at {
            LocalTime {
                offset: before * 60,
                until: Some(at),
            }
        } else {
            LocalTime {
                offset: after * 60,
                until: None,
            }
        }
    }
}

/// By a table of each minute: the first from `now` on in which clocks show a time of the window.
#[test]
fn the_next_opening_is_the_first() {
    let clocks = [
        (0, 0),
        (60, 120),
        (120, 60),
        (-300, -300),
        (345, 345),
        (630, 660),
        (60, -1380),
    ];
    let windows = [
        "22:00-06:00",
        "02:00-03:00",
        "02:30-03:30",
        "23:59-00:00",
        "00:00-00:01",
        "12:00-11:59",
    ];
    for (before, after) in clocks {
        // 02:00 by the clocks before the change
        let at = 5 * DAY + 2 * HOUR - before * MINUTE;
        let local = zone(before, at, after);
        for window in windows.map(window) {
            let is_open = |minute: i64| {
                let shown = minute + if minute * MINUTE < at { before } else { after };
                window.has(shown.rem_euclid(24 * 60))
            };
            let start = at / MINUTE - 2 * 24 * 60;
            for minute in (start..start + 4 * 24 * 60).step_by(7) {
                let open = (minute..).find(|&minute| is_open(minute)).unwrap();
                for part in [0, 1, 59_999_999] {
                    let now = minute * MINUTE + part;
                    let expected = if open == minute { now } else { open * MINUTE };
                    let found = window.next_opening(now, &local);
                    assert_eq!(
                        found, expected,
                        "{window} at {minute} {part} {before} {after}"
                    );
                    let rest = Rest {
                        delete_between: Some(window),
                        ..Rest::default()
                    };
                    let resting = rest.at(now, &local).map(|resting| resting.until);
                    assert_eq!(resting, (!is_open(minute)).then_some(expected));
                }
            }
        }
    }
}

/// The parser's window against the text itself, minute by minute.
#[test]
fn a_window_holds_its_minutes() {
    for from in (0..24 * 60).step_by(97) {
        for to in (0..24 * 60).step_by(89).filter(|&to| to != from) {
            let text = format!(
                "{:02}:{:02}-{:02}:{:02}",
                from / 60,
                from % 60,
                to / 60,
                to % 60
            );
            let mut table = vec![false; 24 * 60];
            let mut minute = from;
            while minute != to {
                table[minute] = true;
                minute = (minute + 1) % (24 * 60);
            }
            for (minute, &open) in table.iter().enumerate() {
                assert_eq!(
                    window(&text).has(i64::try_from(minute).unwrap()),
                    open,
                    "{text} {minute}"
                );
            }
        }
    }
}

#[test]
fn a_pause_ends_and_the_window_counts_after_it() {
    let utc = |_| LocalTime {
        offset: 0,
        until: None,
    };
    let pause = |at| Rest {
        paused_until: Some(PauseEnd::at(at)),
        ..Rest::default()
    };
    assert_eq!(Rest::default().at(0, utc), None);
    assert_eq!(pause(DAY).at(DAY, utc), None);
    let resting = pause(DAY).at(DAY - 1, utc).unwrap();
    assert_eq!((resting.until, resting.paused), (DAY, true));
    // the next whole second, never sooner
    assert_eq!(
        pause(DAY + 1).at(DAY, utc).unwrap().until,
        DAY + MICROS_PER_SECOND
    );
    assert_eq!(pause(INFINITY).at(DAY, utc).unwrap().until, INFINITY);
    let both = Rest {
        delete_between: Some(window("22:00-06:00")),
        ..pause(DAY + 12 * HOUR)
    };
    let resting = both.at(DAY, utc).unwrap();
    assert_eq!((resting.until, resting.paused), (DAY + 22 * HOUR, true));
    let resting = both.at(DAY + 13 * HOUR, utc).unwrap();
    assert_eq!((resting.until, resting.paused), (DAY + 22 * HOUR, false));
    assert_eq!(both.at(DAY + 22 * HOUR, utc), None);
    let endless = Rest {
        delete_between: Some(window("22:00-06:00")),
        ..pause(INFINITY)
    };
    assert_eq!(endless.at(DAY, utc).unwrap().until, INFINITY);
}

#[test]
fn labels() {
    let label = r#"{"default_ttl":60,"paused_until":"infinity","delete_between":"22:00-06:00"}"#;
    let policy = Policy::parse(label).unwrap();
    assert!(policy.paused_until.is_some_and(PauseEnd::is_endless));
    assert_eq!(Policy::parse(&policy.to_label()).unwrap(), policy);
    let policy = Policy {
        paused_until: Some(PauseEnd::at(DAY)),
        ..policy
    };
    assert!(
        policy.to_label().contains(r#""paused_until":946771200"#),
        "{}",
        policy.to_label()
    );
    assert_eq!(Policy::parse(&policy.to_label()).unwrap(), policy);
    // not mentioned unless used
    let plain = Policy::parse(r#"{"default_ttl":60}"#).unwrap().to_label();
    assert!(
        !plain.contains("paused") && !plain.contains("between"),
        "{plain}"
    );
    for bad in [
        r#"{"paused_until":"soon"}"#,
        r#"{"paused_until":-1}"#,
        r#"{"paused_until":1.5}"#,
        r#"{"paused_until":9223372036854775807}"#,
        r#"{"paused_until":[]}"#,
        r#"{"delete_between":"22:00-22:00"}"#,
        r#"{"delete_between":5}"#,
    ] {
        assert!(Policy::parse(bad).is_err(), "{bad}");
    }
}

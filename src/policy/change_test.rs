//! C23, C24: rows are deleted no sooner than they may be, and not much later.

use super::change::*;
use super::expiry::Ttl;
use super::*;
use proptest::prelude::*;

const SECOND: i64 = 1_000_000;

fn is_live(ts: i64, ttl: i32, now: i64) -> bool {
    super::is_live(Some(ts), Ttl::Seconds(ttl), now)
}

/// The condition by which deletion keeps rows, as `visibility/own_query.rs` writes it.
fn is_kept(ts: i64, ttl: i32, keep: i32, now: i64) -> bool {
    is_live(expires_at(Some(ts), Ttl::Seconds(ttl)), keep, now)
}

proptest! {
    /// C23: kept for all of the time, and no microsecond longer; by the condition and by the
    /// lagging clock alike.
    #[test]
    fn c23_kept_so_long(ts in -4_000_000_000..4_000_000_000i64, ttl in 1..i32::MAX, keep in 1..i32::MAX,
                        after in -3 * SECOND..3 * SECOND) {
        let ts = ts * SECOND;
        let expiry = ts + micros(ttl);
        let now = expiry + micros(keep) + after;
        prop_assert_eq!(is_kept(ts, ttl, keep, now), after < 0);
        prop_assert_eq!(is_live(ts, ttl, lagging(now, keep)), after < 0);
        // Never before the row has expired.
        prop_assert!(is_kept(ts, ttl, keep, expiry));
        prop_assert!(is_kept(ts, ttl, keep, expiry - 1));
    }

    /// The same for a TTL index.
    #[test]
    fn c23_kept_by_index(date in -4_000_000_000..4_000_000_000i64, seconds in 0..i32::MAX, keep in 1..i32::MAX,
                         after in -3 * SECOND..3 * SECOND) {
        let date = date * SECOND;
        let now = date + micros(seconds) + micros(keep) + after;
        let expiry = index_expiry(Some(date), seconds);
        prop_assert_eq!(is_live(expiry, keep, now), after < 0);
        prop_assert_eq!(is_live_by_index(Some(date), seconds, lagging(now, keep)), after < 0);
    }

    /// C24: whatever changes when, nothing is deleted within the delay of a change unless
    /// changes have followed each other for twelve times as long; and after the last change
    /// deletion begins when the delay is over.
    #[test]
    fn c24_delay(steps in prop::collection::vec(1..400i64, 1..60), delay in 1..300i64) {
        let delay = delay * SECOND;
        let (mut shortened, mut now, mut first) = (None, 1_000_000 * SECOND, 0);
        for step in steps {
            now += step * SECOND;
            let goes_on = shortened.is_some_and(|it: Shortened| it.waits_until(now, delay).is_some());
            if !goes_on {
                first = now;
            }
            let changed = Shortened::again(shortened, now, delay);
            let until = changed.waits_until(now, delay);
            prop_assert!(until.is_none_or(|until| until <= now + delay && until <= first + 12 * delay));
            if now + delay <= first + 12 * delay {
                prop_assert_eq!(until, Some(now + delay));
            }
            prop_assert_eq!(changed.waits_until(now + delay, delay), None);
            shortened = Some(changed);
        }
    }

    /// A clock that is set back holds deletion for no longer than twice the delay.
    #[test]
    fn c24_clock_set_back(back in 0..i64::MAX / 4, delay in 0..i64::from(i32::MAX)) {
        let delay = delay * SECOND;
        let changed = Shortened::again(None, back, delay);
        prop_assert!(changed.waits_until(0, delay).is_none_or(|until| until <= 2 * delay));
    }
}

#[test]
fn c24_no_delay() {
    let changed = Shortened::again(None, 5, 0);
    assert_eq!(changed.waits_until(5, 0), None);
    assert_eq!(changed.waits_until(4, 0), None);
}

fn policy(label: &str) -> Policy {
    Policy::parse(label).unwrap()
}

#[test]
fn c24_what_shortens() {
    let of = |default: &str| policy(&format!(r#"{{"default_ttl": {default}}}"#));
    for (from, to, shortens) in [
        ("null", "null", false),
        ("null", "-1", true),
        ("null", "10", true),
        ("-1", "10", true),
        ("10", "-1", false),
        ("10", "null", false),
        ("10", "10", false),
        ("10", "11", false),
        ("11", "10", true),
    ] {
        assert_eq!(of(to).shortens(Some(&of(from))), shortens, "{from} {to}");
    }
    assert!(of("10").shortens(None));
    assert!(!of("null").shortens(None));
    let rule = |seconds: i32, keep: i32| {
        policy(&format!(
            r#"{{"default_ttl": 10, "keep_expired": {keep}, "rules": [{{"index": "i", "expire_after_seconds": {seconds}}}]}}"#
        ))
    };
    assert!(rule(5, 0).shortens(Some(&of("10"))));
    assert!(rule(4, 0).shortens(Some(&rule(5, 0))));
    assert!(!rule(5, 0).shortens(Some(&rule(4, 0))));
    assert!(!of("10").shortens(Some(&rule(5, 0))));
    // M13: in another time zone some rows expire sooner.
    let zoned = |zone: &str| {
        let rule = format!(r#"{{"index": "i", "expire_after_seconds": 5{zone}}}"#);
        policy(&format!(r#"{{"default_ttl": 10, "rules": [{rule}]}}"#))
    };
    let (utc, tokyo) = (zoned(""), zoned(r#", "time_zone": "Asia/Tokyo""#));
    assert!(tokyo.shortens(Some(&utc)) && utc.shortens(Some(&tokyo)));
    assert!(!tokyo.shortens(Some(&tokyo)));
    // But it deletes nothing first: the dates have meant that all along.
    assert!(!tokyo.revives(Some(&utc)) && !utc.revives(Some(&tokyo)));
    // Kept for less: deleted sooner.
    assert!(rule(5, 1).shortens(Some(&rule(5, 2))));
    assert!(!rule(5, 2).shortens(Some(&rule(5, 1))));
    let document = policy(r#"{"default_ttl": 10, "document_column": "d"}"#);
    assert!(document.shortens(Some(&of("10"))));
}

/// 0 and what is absent are the same, and not written.
#[test]
fn c23_label() {
    assert_eq!(policy(r#"{"default_ttl": 10}"#).keep_expired, 0);
    assert!(!policy(r#"{"keep_expired": 0}"#).to_label().contains("keep"));
    let kept = r#"{"keep_expired": 2147483647}"#;
    assert_eq!(policy(&policy(kept).to_label()), policy(kept));
    let mut kept = policy(kept);
    kept.local.shortened = Some(Shortened::again(None, 5, 4));
    let stored =
        LocalState::parse(&kept.local.stored_in(Home::default(), 10)).expect("what was stored");
    assert_eq!(stored.shortened, kept.local.shortened);
    for bad in [
        r#"{"keep_expired": -1}"#,
        r#"{"keep_expired": 2147483648}"#,
        r#"{"keep_expired": 1.5}"#,
        r#"{"keep_expired": null}"#,
        r#"{"shortened": {"at": 5, "since": 4}}"#,
    ] {
        assert!(Policy::parse(bad).is_err(), "{bad}");
    }
    assert_eq!(
        kept.turned_off().local.shortened,
        None,
        "a policy that is off holds nothing back"
    );
}

//! C7, C8: the schedule: naptime as the upper bound, exact expiry, back-off, writes.

use super::schedule::Writes;
use super::schedule::{LATE, Outcome, Schedule, VERY_LATE, interval_of_reading, set_aside};
use proptest::prelude::*;

const SECOND: i64 = 1_000_000;
const NAP: i64 = 60 * SECOND;
/// One of the instants that tables share.
const NOW: i64 = 900_000 * SECOND;

/// Rows with a time of their own.
const KEPT: Writes = Writes {
    any: true,
    kept_ts: true,
};

fn done(next_expiry: Option<i64>) -> Outcome {
    Outcome::Done {
        next_expiry,
        leftover: false,
        interval: 0,
    }
}

fn after(outcome: Outcome) -> Schedule {
    let mut schedule = Schedule::default();
    schedule.after_full_search(0, NOW);
    schedule.after_turn(outcome, NAP, NOW);
    schedule
}

#[test]
fn a_new_table_is_looked_at_now_and_from_the_beginning() {
    assert!(Schedule::default().due < NOW);
    assert!(Schedule::default().begins_full(NAP, NOW));
}

#[test]
fn naptime_is_the_upper_bound() {
    assert_eq!(after(done(None)).due, NOW + NAP);
    assert_eq!(after(done(Some(NOW + 2 * NAP))).due, NOW + NAP);
    assert_eq!(after(done(Some(i64::MAX))).due, NOW + NAP);
}

#[test]
fn the_next_expiry_is_met_exactly() {
    assert_eq!(after(done(Some(NOW + 7 * SECOND))).due, NOW + 7 * SECOND);
}

#[test]
fn tables_with_nothing_to_do_are_looked_at_together() {
    let due = |now, naptime| {
        let mut schedule = Schedule::default();
        schedule.after_full_search(0, now);
        schedule.after_turn(done(None), naptime, now);
        assert!(schedule.is_routine());
        schedule.due
    };
    assert_eq!(due(NOW + 1, NAP), NOW + NAP);
    assert_eq!(due(NOW + NAP / 4 - 1, NAP), NOW + NAP);
    assert_eq!(due(NOW + NAP / 4, NAP), NOW + NAP + NAP / 4);
    // A short naptime stays nearly as long as it is.
    assert_eq!(due(NOW + SECOND / 2 + 1, SECOND), NOW + SECOND + SECOND / 2);
}

#[test]
fn expiry_that_never_stops_does_not_make_a_busy_loop() {
    assert_eq!(after(done(Some(NOW + 1))).due, NOW + SECOND / 2);
    assert_eq!(after(done(Some(NOW - NAP))).due, NOW + SECOND / 2);
}

#[test]
fn more_to_do_is_due_at_once_but_behind_what_waits_longer() {
    assert_eq!(after(Outcome::Unfinished).due, NOW);
}

#[test]
fn failures_back_off_up_to_naptime() {
    let mut schedule = Schedule::default();
    let mut pauses = vec![];
    for _ in 0..9 {
        schedule.after_turn(Outcome::Failed, NAP, NOW);
        pauses.push((schedule.due - NOW) / SECOND);
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    schedule.after_turn(done(None), NAP, NOW);
    schedule.after_turn(Outcome::Failed, NAP, NOW);
    assert_eq!(schedule.due, NOW + SECOND, "success ends the back-off");
}

#[test]
fn rows_left_behind_are_met_again_ever_more_seldom() {
    let mut schedule = Schedule::default();
    let left = Outcome::Done {
        next_expiry: None,
        leftover: true,
        interval: 0,
    };
    schedule.after_full_search(0, NOW);
    schedule.after_turn(left, NAP, NOW);
    assert_eq!(schedule.due, NOW + SECOND);
    assert!(
        schedule.begins_full(NAP, NOW),
        "they may stand before the place reached"
    );
    schedule.after_turn(left, NAP, NOW);
    assert_eq!(schedule.due, NOW + 2 * SECOND);
    schedule.after_turn(done(None), NAP, NOW);
    schedule.after_turn(left, NAP, NOW);
    assert_eq!(schedule.due, NOW + SECOND);
}

#[test]
fn expensive_looks_are_seldom() {
    let outcome = Outcome::Done {
        next_expiry: Some(NOW + SECOND),
        leftover: true,
        interval: 100 * SECOND,
    };
    assert_eq!(after(outcome).due, NOW + 100 * SECOND);
}

#[test]
fn writes_make_a_table_due_once_a_second() {
    let ordinary = Writes {
        any: true,
        kept_ts: false,
    };
    let mut schedule = after(done(None));
    schedule.after_full_search(0, NOW);
    // An override of one second is the shortest.
    schedule.after_writes(ordinary, SECOND, NOW + 10);
    assert_eq!(schedule.due, NOW + 10 + SECOND);
    assert!(!schedule.begins_full(NAP, NOW + SECOND));
    // Without overrides nothing can expire before the default.
    let mut schedule = after(done(None));
    schedule.after_writes(ordinary, 30 * SECOND, NOW);
    assert_eq!(schedule.due, NOW + 30 * SECOND);
    // Rows with a time of their own may be expired already.
    let mut schedule = after(done(None));
    schedule.after_full_search(0, NOW);
    schedule.after_writes(KEPT, 30 * SECOND, NOW + 5);
    assert_eq!(schedule.due, NOW + SECOND);
    assert!(schedule.begins_full(NAP, NOW + SECOND));
}

#[test]
fn a_slow_search_from_the_beginning_is_seldom() {
    let mut schedule = Schedule::default();
    schedule.after_full_search(20 * SECOND, NOW);
    schedule.after_writes(KEPT, SECOND, NOW);
    assert!(!schedule.begins_full(NAP, NOW + 19 * SECOND));
    assert!(schedule.begins_full(NAP, NOW + 20 * SECOND));
}

/// What was written with an old time is found in the end, though a search was
/// made just before that was slow.
#[test]
fn a_search_that_is_owed_is_made() {
    let mut schedule = Schedule::default();
    schedule.after_full_search(20 * SECOND, NOW);
    schedule.after_writes(KEPT, SECOND, NOW);
    schedule.after_turn(done(None), NAP, NOW + SECOND);
    assert!(!schedule.is_routine());
    assert_eq!(schedule.due, NOW + 20 * SECOND);
    assert!(schedule.begins_full(NAP, schedule.due));
    schedule.after_full_search(0, NOW + 20 * SECOND);
    schedule.after_turn(done(None), NAP, NOW + 20 * SECOND);
    assert!(schedule.is_routine());
    assert!(schedule.begins_full(NAP, schedule.due));
}

/// M9: what the searches of all indexes cost together is one part in twenty of the time.
#[test]
fn m9_searches_of_further_indexes_count() {
    let mut schedule = Schedule::default();
    schedule.after_full_search(20 * SECOND, NOW);
    schedule.after_further_search(2 * SECOND);
    schedule.after_writes(KEPT, SECOND, NOW);
    schedule.after_turn(done(None), NAP, NOW + 3 * SECOND);
    assert!(!schedule.begins_full(NAP, NOW + 60 * SECOND - 1));
    assert!(schedule.begins_full(NAP, NOW + 60 * SECOND));
    // The search that is owed is not taken for made.
    let mut schedule = Schedule::default();
    schedule.after_full_search(0, NOW);
    schedule.after_writes(KEPT, SECOND, NOW);
    schedule.after_further_search(0);
    assert!(schedule.begins_full(NAP, NOW));
}

#[test]
fn a_change_of_policy_is_acted_on_now() {
    let mut schedule = after(Outcome::Failed);
    schedule.now();
    assert!(schedule.due < NOW && schedule.begins_full(NAP, NOW));
}

#[test]
fn set_aside_grows_to_an_hour() {
    let minutes: Vec<i64> = (1..10)
        .map(|n| set_aside(n, false) / (60 * SECOND))
        .collect();
    assert_eq!(minutes, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    assert_eq!(set_aside(u16::MAX, false), 3600 * SECOND);
    let seconds: Vec<i64> = (1..8).map(|n| set_aside(n, true) / SECOND).collect();
    assert_eq!(seconds, [2, 4, 8, 16, 32, 60, 60]);
}

proptest! {
    /// Whatever happens: never in the past of a finished turn, never later than naptime.
    #[test]
    fn due_is_bounded(expiry in any::<Option<i64>>(), leftover: bool, naptime in 1i64..86_400, now in 0i64..1 << 60) {
        let naptime = naptime * SECOND;
        let mut schedule = Schedule::default();
        schedule.after_turn(Outcome::Done { next_expiry: expiry, leftover, interval: 0 }, naptime, now);
        prop_assert!(schedule.due >= now && schedule.due <= now + naptime);
        schedule.after_turn(Outcome::Failed, naptime, now);
        prop_assert!(schedule.due > now && schedule.due <= now + naptime);
    }
}

/// How long a look has been waited for: not while one is going on, nor where none is wanted.
#[test]
fn waiting_since() {
    let mut schedule = Schedule::default();
    assert_eq!(schedule.waiting_since(), Some(i64::MIN));
    schedule.begin_turn(NOW);
    assert_eq!(schedule.waiting_since(), None);
    schedule.after_full_search(0, NOW);
    schedule.after_turn(done(Some(NOW + 5 * SECOND)), NAP, NOW);
    assert_eq!(schedule.waiting_since(), Some(NOW + 5 * SECOND));
    // A change that asks for a look now has not waited since before the last one.
    schedule.now();
    assert_eq!(schedule.waiting_since(), Some(NOW));
    schedule.never();
    assert_eq!(schedule.waiting_since(), None);
}

/// C29, C30: a rest is looked at when it ends, and once in a naptime; writes do not shorten it.
#[test]
fn a_rest_ends_in_time() {
    let resting = |until| Outcome::Resting { until, interval: 0 };
    let writes = Writes {
        any: true,
        kept_ts: true,
    };
    for (until, due) in [
        (NOW + SECOND / 2, NOW + SECOND / 2),
        (NOW + NAP / 2, NOW + NAP / 2),
        (NOW + 10 * NAP, NOW + NAP),
        (i64::MAX, NOW + NAP),
    ] {
        let mut schedule = after(resting(until));
        schedule.after_writes(writes, SECOND, NOW + 1);
        assert_eq!(schedule.due, due);
        // what came meanwhile is found
        assert!(schedule.begins_full(NAP, due));
        assert!(!schedule.is_routine());
        // Who ends it is heard at once.
        schedule.now();
        assert_eq!(schedule.due, i64::MIN);
    }
    let dear = Outcome::Resting {
        until: NOW + 100 * NAP,
        interval: 3 * NAP,
    };
    assert_eq!(after(dear).due, NOW + 3 * NAP);
}

/// A table that is read takes one part in a hundred of the time, up to a minute late, and never more than one in twenty; a busy
/// machine counts for no more than slow disks would.
#[test]
fn tables_that_are_read() {
    const MS: i64 = 1000;
    let megabytes = |count: u64| count * 128;
    for (cost, blocks, expected) in [
        (2 * MS, megabytes(1), 200 * MS),
        (200 * MS, megabytes(100), 20 * SECOND),
        (SECOND, megabytes(500), 60 * SECOND),
        (4 * SECOND, megabytes(1000), 80 * SECOND),
        // Two blocks do not take a second.
        (SECOND, 2, 40 * MS),
    ] {
        assert_eq!(interval_of_reading(cost, blocks, LATE), expected, "{cost}");
    }
    let all = |cost| interval_of_reading(cost, megabytes(10_000), VERY_LATE);
    assert_eq!(all(SECOND), 100 * SECOND);
    assert_eq!(all(20 * SECOND), 600 * SECOND);
    assert_eq!(all(40 * SECOND), 800 * SECOND);
}

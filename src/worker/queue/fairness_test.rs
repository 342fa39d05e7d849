//! S5 (docs/security.md): time belongs to owners.

use super::fairness::{Applicant, Backlog, Habit, Spent, Used, admits_slow, is_slow_batch, rank};
use std::time::Duration;

const SECOND: i64 = 1_000_000;
const NOW: i64 = 1_000_000 * SECOND;
const MOST: Duration = Duration::from_secs(60);

fn timed_out() -> Spent {
    Spent {
        took: Duration::from_secs(1),
        longest: Duration::from_millis(500),
        timed_out: true,
        dawdled: false,
    }
}

fn quick() -> Spent {
    Spent {
        took: Duration::from_millis(60),
        longest: Duration::from_millis(50),
        ..Spent::default()
    }
}

#[test]
fn time_used_counts_half_after_a_while() {
    let mut used = Used::default();
    assert_eq!(used.now(NOW), 0);
    used.add(8 * SECOND, NOW);
    assert_eq!(used.now(NOW), 8 * SECOND);
    assert_eq!(used.now(NOW + 20 * SECOND), 4 * SECOND);
    used.add(SECOND, NOW + 20 * SECOND);
    assert_eq!(used.now(NOW + 20 * SECOND), 5 * SECOND);
    assert!(rank(used.now(NOW + 300 * SECOND)) == 0, "forgotten");
    // A clock that is set back forgets nothing.
    assert_eq!(used.now(NOW - SECOND), 5 * SECOND);
}

#[test]
fn limits_begin_small_and_grow() {
    let mut habit = Habit::default();
    let mut limits = vec![];
    for _ in 0..6 {
        limits.push(habit.limit(MOST).as_millis());
        habit.after_turn(&timed_out(), MOST);
    }
    assert_eq!(limits, [500, 2000, 8000, 32_000, 60_000, 60_000]);
    // ttl.statement_timeout is the most at any time.
    let most = Duration::from_secs(1);
    let mut habit = Habit::default();
    for _ in 0..300 {
        habit.after_turn(&timed_out(), most);
    }
    assert_eq!(habit.limit(most), most);
    assert_eq!(habit.limit(MOST), Duration::from_secs(2), "no further");
}

/// An honest table that was slow once is not called slow, and is trusted again.
#[test]
fn a_table_recovers() {
    let mut habit = Habit::default();
    habit.after_turn(&timed_out(), MOST);
    assert!(!habit.slow && habit.is_suspect(), "a first batch too large");
    habit.after_turn(&quick(), MOST);
    assert!(!habit.is_suspect());
    habit.after_turn(&timed_out(), MOST);
    habit.after_turn(&timed_out(), MOST);
    assert!(habit.slow);
    // A turn that has not looked says nothing.
    habit.after_turn(&Spent::default(), MOST);
    assert!(habit.slow);
    // It needs what it has got, so that it keeps it.
    let long = Spent {
        longest: Duration::from_secs(5),
        ..Spent::default()
    };
    habit.after_turn(&long, MOST);
    assert!(!habit.slow);
    assert_eq!(habit.limit(MOST), Duration::from_secs(8));
}

#[test]
fn slow_is_much_time_for_few_rows() {
    assert!(is_slow_batch(1, Duration::from_millis(400)));
    assert!(!is_slow_batch(1, Duration::from_millis(100)));
    assert!(!is_slow_batch(5000, Duration::from_secs(3)));
    let mut habit = Habit::default();
    let dawdled = Spent {
        dawdled: true,
        ..quick()
    };
    habit.after_turn(&dawdled, MOST);
    assert!(habit.slow);
}

#[test]
fn one_worker_is_left() {
    assert!(admits_slow(0, 3) && admits_slow(1, 3) && !admits_slow(2, 3));
    assert!(admits_slow(0, 2) && !admits_slow(1, 2));
    assert!(admits_slow(0, 1), "where there is one, its limits must do");
}

#[test]
fn more_tables_than_workers_are_told_of_once_a_second() {
    let mut backlog = Backlog::default();
    let mut told = |due, workers, at| backlog.needs_another(due, workers, NOW + at);
    assert!(!told(2, 1, 0));
    assert!(!told(2, 1, SECOND - 1));
    assert!(told(2, 1, SECOND));
    assert!(!told(2, 1, SECOND + 1));
    assert!(told(3, 2, 2 * SECOND));
    // One for each: from the beginning again.
    assert!(!told(2, 2, 3 * SECOND));
    assert!(!told(3, 2, 4 * SECOND));
    assert!(!told(3, 2, 5 * SECOND - 1));
    assert!(told(3, 2, 5 * SECOND));
}

#[test]
fn who_was_refused_a_while_ago_is_first() {
    let applicant = |workers, refused, rank, started_at| Applicant {
        workers,
        refused,
        rank,
        started_at,
    };
    let second = SECOND;
    // In order of precedence.
    let applicants = [
        applicant(0, NOW - 9 * second, 70, NOW - 20 * second),
        applicant(0, NOW - 2 * second, 0, NOW - 30 * second),
        // One refused just now is one of the others yet.
        applicant(0, NOW, 0, NOW - 3 * second),
        applicant(0, NOW - second, 0, NOW - 2 * second),
        applicant(0, NOW - second, 80, NOW - 40 * second),
        // Others have none at all.
        applicant(1, NOW - 9 * second, 0, 0),
    ];
    let orders = applicants.map(|applicant| applicant.order(NOW));
    assert!(orders.is_sorted(), "{orders:?}");
    // However often others with nothing to do come, one that waits is served.
    let mut refused = applicant(0, NOW, 100, NOW);
    for round in 0..10 {
        let now = NOW + round * second;
        let routine = applicant(0, now, 0, now - second);
        if refused.order(now) < routine.order(now) {
            assert!(round >= 2, "not at once: {round}");
            return;
        }
        refused.rank = 100;
    }
    panic!("it waits for ever");
}

//! C7, complaints 4 and 7: batches adapt to their time; failures cut them down to the one bad row.

use super::batch_size::{after_failure, after_success, first, is_for_heap};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

#[test]
fn batches_grow_and_shrink_towards_their_time() {
    assert_eq!(first(10_000), 500);
    assert_eq!(first(10), 10);
    assert_eq!(after_success(500, 500, MS, 10_000, 1.0), 1000);
    assert_eq!(after_success(500, 500, 50 * MS, 10_000, 1.0), 500);
    assert_eq!(after_success(500, 500, 100 * MS, 10_000, 1.0), 250);
    assert_eq!(after_success(500, 500, 60_000 * MS, 10_000, 1.0), 125);
    assert_eq!(after_success(8000, 8000, MS, 10_000, 1.0), 10_000);
    assert_eq!(after_success(1, 1, 1000 * MS, 10_000, 1.0), 1);
}

#[test]
fn cascades_count() {
    // 100 parents with 1000 children each.
    assert_eq!(after_success(100, 100_100, 10 * MS, 10_000, 1.0), 25);
    assert_eq!(after_success(8, 8000, MS, 10_000, 1.0), 10);
}

#[test]
fn a_busy_server_gets_small_ones() {
    let next = |size, ms, share| after_success(size, size.into(), ms * MS, 10_000, share);
    assert_eq!(next(10_000, 5, 0.5), 5000);
    assert_eq!(next(10_000, 5, 0.01), 2500, "in steps");
    assert_eq!(next(2500, 1, 0.01), 1000);
    assert_eq!(next(1000, 20, 0.01), 1000, "no smaller");
    assert_eq!(next(1000, 100, 0.01), 500, "but by its own time");
    assert_eq!(after_success(10, 10, MS, 10, 0.01), 10);
}

#[test]
fn a_failure_is_cut_down_to_one_row() {
    let mut size = 10_000;
    let mut steps = 0;
    while let Some(smaller) = after_failure(size) {
        assert!(smaller < size);
        size = smaller;
        steps += 1;
    }
    assert_eq!((size, steps), (1, 13));
}

#[test]
fn the_way_depends_on_how_much_is_expired() {
    assert!(!is_for_heap(0, 0));
    assert!(!is_for_heap(1000, 10), "small is small");
    assert!(is_for_heap(1_000_000, 100_000));
    assert!(!is_for_heap(1_000_000, 10_000_000));
}

//! M11: an empty partition is no evidence that rows have expired.

use super::emptiness::Emptiness;

const DAY: i64 = 86_400_000_000;

#[test]
fn an_empty_partition_has_its_time() {
    let mut partition = Emptiness::new();
    partition.look(16400, 0);
    assert!(!partition.may_go(0, 7, DAY));
    partition.look(16400, 0);
    assert!(!partition.may_go(0, 6 + DAY, DAY));
    assert!(partition.may_go(0, 7 + DAY, DAY));
    // A row that came meanwhile.
    partition.interrupt();
    assert!(!partition.may_go(0, 8 + DAY, DAY));
    assert!(!partition.may_go(0, 7 + 2 * DAY, DAY));
    assert!(partition.may_go(0, 8 + 2 * DAY, DAY));
}

#[test]
fn rows_that_workers_have_deleted_are_evidence() {
    let mut partition = Emptiness::new();
    // Those of an earlier run of the server are not: the file may be another.
    partition.look(16400, 100);
    assert!(!partition.may_go(100, 1, DAY));
    partition.look(16400, 101);
    assert!(partition.may_go(101, 2, DAY));
    // TRUNCATE, and somebody fills it again.
    partition.look(16401, 101);
    assert!(!partition.may_go(101, 3, DAY));
    // ttl.reset_stats
    partition.look(16401, 0);
    assert!(!partition.may_go(0, 4, DAY));
    partition.look(16401, 1);
    assert!(partition.may_go(1, 5, DAY));
}

#[test]
fn rows_that_were_found_are_evidence() {
    let mut partition = Emptiness::new();
    partition.found_expired();
    partition.look(16400, 0);
    assert!(partition.may_go(0, 1, DAY));
    partition.look(16401, 0);
    assert!(!partition.may_go(0, 2, DAY));
    partition.found_expired();
    partition.look(16401, 0);
    assert!(partition.may_go(0, 3, DAY));
}

#[test]
fn no_age_is_at_once() {
    let mut partition = Emptiness::new();
    partition.look(16400, 0);
    assert!(partition.may_go(0, 1, 0));
}

//! M11: an empty partition is no evidence that rows have expired.

use super::emptiness::Emptiness;

const DAY: i64 = 86_400_000_000;

#[test]
fn an_empty_partition_has_its_time() {
    let mut partition = Emptiness::default();
    assert!(!partition.may_go(16400, 7, DAY));
    assert!(!partition.may_go(16400, 6 + DAY, DAY));
    assert!(partition.may_go(16400, 7 + DAY, DAY));
    // A row that came meanwhile.
    partition.interrupt();
    assert!(!partition.may_go(16400, 8 + DAY, DAY));
    assert!(!partition.may_go(16400, 7 + 2 * DAY, DAY));
    assert!(partition.may_go(16400, 8 + 2 * DAY, DAY));
    // TRUNCATE, and somebody fills it again.
    assert!(!partition.may_go(16401, 9 + 2 * DAY, DAY));
}

#[test]
fn rows_that_were_found_are_evidence() {
    let mut partition = Emptiness::default();
    partition.found_expired(16400);
    assert!(partition.may_go(16400, 1, DAY));
    assert!(partition.may_go(16400, 2, DAY));
    // Not of what another file held.
    assert!(!partition.may_go(16401, 3, DAY));
    partition.found_expired(16401);
    assert!(partition.may_go(16401, 4, DAY));
}

/// The first turn that deletes from a partition may not know yet that its parent asks for whole
/// partitions to be dropped.
#[test]
fn it_counts_whenever_they_were_found() {
    for looked_before in [false, true] {
        let mut partition = Emptiness::default();
        if looked_before {
            partition.may_go(16400, 1, DAY);
        }
        partition.found_expired(16400);
        partition.interrupt();
        assert!(partition.may_go(16400, 2, DAY));
    }
}

#[test]
fn no_age_is_at_once() {
    assert!(Emptiness::default().may_go(16400, 1, 0));
}

//! M13: local time, by zones made up.

use super::expiry::{END_TIMESTAMP, INFINITY, MICROS_PER_SECOND, MINUS_INFINITY};
use super::rest::LocalTime;
use super::zone::*;
use proptest::prelude::*;

const HOUR: i64 = 3600 * MICROS_PER_SECOND;
const DAY: i64 = 24 * HOUR;

/// A zone that begins with an offset in seconds, and changes to others at these instants.
fn zone(first: i64, changes: &[(i64, i64)]) -> impl Fn(i64) -> LocalTime + use<> {
    let changes = changes.to_vec();
    move |instant| {
        let past = changes.iter().take_while(|(at, _)| *at <= instant);
        let (count, offset) = past.fold((0, first), |(count, _), &(_, to)| (count + 1, to));
        LocalTime {
            offset,
            until: changes.get(count).map(|&(at, _)| at),
        }
    }
}

/// As in New York: an hour forward at 100 days, back at 300.
fn new_york() -> impl Fn(i64) -> LocalTime {
    zone(-5 * 3600, &[(100 * DAY, -4 * 3600), (300 * DAY, -5 * 3600)])
}

#[test]
fn without_changes_the_offset_counts() {
    for offset in [0, 5 * 3600 + 45 * 60, -10 * 3600] {
        let zone = zone(offset, &[]);
        for local in [0, -400 * DAY, 7 * HOUR + 1] {
            let instant = local - offset * MICROS_PER_SECOND;
            assert_eq!(instant_of_local(local, &zone), instant);
            assert_eq!(latest_local(instant, &zone), local);
            assert_eq!(earliest_local(instant, &zone), local);
            assert_eq!(latest_instant(local, &zone), instant);
        }
    }
}

#[test]
fn a_row_lives_the_longer_way() {
    // Forward: clocks go from 19:00 to 20:00 at the change, which is at 00:00 UTC.
    let (forward, zone) = (100 * DAY, new_york());
    for (local, instant) in [
        (forward - 5 * HOUR - 1, forward - 1),
        // Skipped: by the former offset.
        (forward - 5 * HOUR, forward),
        (forward - 5 * HOUR + HOUR / 2, forward + HOUR / 2),
        (forward - 4 * HOUR, forward),
        (forward, forward + 4 * HOUR),
    ] {
        assert_eq!(instant_of_local(local, &zone), instant, "{local}");
    }
    // Back: from 20:00 to 19:00. What is shown twice is the second time.
    let back = 300 * DAY;
    for (local, instant) in [
        (back - 5 * HOUR - 1, back - HOUR - 1),
        (back - 5 * HOUR, back),
        (back - 4 * HOUR - 1, back + HOUR - 1),
        (back - 4 * HOUR, back + HOUR),
    ] {
        assert_eq!(instant_of_local(local, &zone), instant, "{local}");
    }
}

#[test]
fn infinities_and_the_end_of_time() {
    let west = zone(-12 * 3600, &[]);
    assert_eq!(instant_of_local(INFINITY, &west), INFINITY);
    assert_eq!(instant_of_local(MINUS_INFINITY, &west), MINUS_INFINITY);
    assert_eq!(local_of_instant(INFINITY, &west), INFINITY);
    let last = END_TIMESTAMP - 1;
    assert_eq!(instant_of_local(last, &west), INFINITY);
    assert_eq!(instant_of_local(last - 12 * HOUR, &west), last);
    assert_eq!(latest_instant(INFINITY, &west), INFINITY);
    assert_eq!(same_offset(last, &west).instant(last), None);
    assert_eq!(
        same_offset(last - 13 * HOUR, &west).instant(last - 12 * HOUR),
        Some(last)
    );
    assert_eq!(
        same_offset(last - 13 * HOUR, &west).instant(last - 12 * HOUR + 1),
        None
    );
}

/// Some changes, at least 40 days apart, of up to a day.
fn changes() -> impl Strategy<Value = (i64, Vec<(i64, i64)>)> {
    let offset = || -14 * 60i64..=14 * 60;
    let change = (40i64..400, 0i64..24 * 60, offset());
    (offset(), proptest::collection::vec(change, 0..6)).prop_map(|(first, changes)| {
        let mut at = -600 * DAY;
        let changes = changes.into_iter().map(|(days, minutes, offset)| {
            at += days * DAY + minutes * 60 * MICROS_PER_SECOND;
            (at, offset * 60)
        });
        (first * 60, changes.collect())
    })
}

/// A local time: near a change, or anywhere.
fn near(changes: &[(i64, i64)], which: usize, distance: i64) -> i64 {
    match changes.get(which % (changes.len() + 1)) {
        Some(&(at, _)) => at + distance,
        None => distance * 20,
    }
}

proptest! {
    /// Whatever a local time means, clocks show it then, or have skipped it; and it is the last such
    /// instant.
    #[test]
    fn clocks_show_what_a_local_time_means((first, changes) in changes(), which in 0usize..6, distance in -3 * DAY..3 * DAY) {
        let zone = zone(first, &changes);
        let local = near(&changes, which, distance);
        let instant = instant_of_local(local, &zone);
        let shown = local_of_instant(instant, &zone);
        if shown != local {
            // A skipped time, by the offset before the change.
            let skipped = changes.iter().any(|&(at, _)| {
                let (before, after) = (zone(at - 1).offset, zone(at).offset);
                let gap = at + before * MICROS_PER_SECOND..at + after * MICROS_PER_SECOND;
                gap.contains(&local) && instant == local - before * MICROS_PER_SECOND
            });
            prop_assert!(skipped, "{local} {instant} {shown}");
        }
        for &(at, _) in &changes {
            let later = local - zone(at).offset * MICROS_PER_SECOND;
            prop_assert!(later <= instant || local_of_instant(later, &zone) != local);
        }
    }

    /// What deletion looks for by an index holds everything that is expired.
    #[test]
    fn bounds_hold_what_they_should(
        (first, changes) in changes(), which in 0usize..6, distance in -3 * DAY..3 * DAY, other in -3 * DAY..3 * DAY,
    ) {
        let zone = zone(first, &changes);
        let local = near(&changes, which, distance);
        let cutoff = near(&changes, which, other);
        let instant = instant_of_local(local, &zone);
        if instant <= cutoff {
            prop_assert!(local <= latest_local(cutoff, &zone));
        }
        if instant >= cutoff {
            prop_assert!(local >= earliest_local(cutoff, &zone));
        }
        let newest = near(&changes, which, other);
        if local <= newest {
            prop_assert!(instant <= latest_instant(newest, &zone));
        }
    }

    /// The offset that is kept for other rows gives each the same instant.
    #[test]
    fn the_same_offset_means_the_same(
        (first, changes) in changes(), which in 0usize..6, one in -3 * DAY..3 * DAY, other in -3 * DAY..3 * DAY,
    ) {
        let zone = zone(first, &changes);
        let (one, other) = (near(&changes, which, one), near(&changes, which, other));
        let joined = same_offset(one, &zone).joined(same_offset(other, &zone));
        prop_assert_eq!(joined.instant(other), Some(instant_of_local(other, &zone)));
        for local in [one, (one + other) / 2] {
            if let Some(instant) = joined.instant(local) {
                prop_assert_eq!(instant, instant_of_local(local, &zone));
            }
        }
    }
}

use super::summary::{NARROWEST, RANGES, Summary};
use proptest::prelude::*;

const SECOND: i64 = 1_000_000;

#[test]
fn what_is_not_known_is_read() {
    let summary = Summary::new();
    assert_eq!(summary.next_due(0, 10_000, 0), 0);
    assert!(summary.is_incomplete(10_000));
    assert_eq!(summary.next_after(i64::MIN, 10_000), None);
}

#[test]
fn ranges_are_read_when_they_are_due() {
    let mut summary = Summary::new();
    let end = 3 * NARROWEST - 10;
    summary.note(0, Some(100 * SECOND));
    summary.note(NARROWEST, None);
    summary.note(2 * NARROWEST, Some(50 * SECOND + 1));
    assert!(!summary.is_incomplete(end));
    assert_eq!(summary.next_due(0, end, 50 * SECOND), end);
    assert_eq!(summary.next_due(0, end, 51 * SECOND), 2 * NARROWEST);
    // One that was begun is read to its end.
    assert_eq!(summary.next_due(7, end, 0), 7);
    assert_eq!(summary.next_due(0, end, 100 * SECOND), 0);
    assert_eq!(summary.next_due(NARROWEST, end, i64::MAX), NARROWEST);
    assert_eq!(summary.next_after(i64::MIN, end), Some(51 * SECOND));
    assert_eq!(summary.next_after(51 * SECOND, end), Some(100 * SECOND));
    assert_eq!(summary.next_after(i64::MIN, NARROWEST), Some(100 * SECOND));
    assert_eq!(summary.part_due(50 * SECOND, end), 0.0);
    assert_eq!(summary.part_due(51 * SECOND, end), 1.0 / 3.0);
    assert_eq!(summary.part_due(i64::MAX, end), 1.0);
    summary.forget(NARROWEST);
    assert!(summary.is_incomplete(end));
}

#[test]
fn written_later() {
    let mut summary = Summary::new();
    assert_eq!(summary.least_override(), None);
    summary.note_override(60);
    summary.note_override(600);
    assert_eq!(summary.least_override(), Some(60));
    let is_complete = |summary: &Summary, second, soonest: Option<i64>| {
        summary.is_complete(second * SECOND, soonest.map(|soonest| soonest * SECOND))
    };
    assert!(!is_complete(&summary, 0, None));
    summary.complete(10 * SECOND);
    assert!(is_complete(&summary, 59, Some(50)) && !is_complete(&summary, 60, Some(50)));
    assert!(!is_complete(&summary, 59, Some(40)) && is_complete(&summary, 1000, None));
    summary.begin_anew();
    assert!(!is_complete(&summary, 0, Some(50)));
    assert_eq!(summary.least_override(), None);
}

/// What is done to a summary.
#[derive(Debug, Clone)]
enum Step {
    /// The table grows to this number of blocks.
    Grow(u32),
    /// The range of this block was read, whose first row expires then.
    Read(u32, Option<i64>),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..2_000_000u32).prop_map(Step::Grow),
        (0..1_000_000u32, prop::option::of(1..100_000_000i64))
            .prop_map(|(block, due)| Step::Read(block, due)),
    ]
}

proptest! {
    /// A block is passed over only if no row in it is due, whatever was read and however the table has grown.
    #[test]
    fn no_block_is_passed_over_that_is_due(
        steps in prop::collection::vec(step(), 0..200),
        now in 0..100_000_000i64,
    ) {
        let mut summary = Summary::new();
        let mut blocks = NARROWEST * RANGES as u32;
        // When the blocks are due, by those that were read together.
        let mut due: Vec<(std::ops::Range<u32>, i64)> = vec![];
        for step in steps {
            match step {
                Step::Grow(to) => {
                    blocks = blocks.max(to);
                    summary.fit(blocks);
                }
                Step::Read(block, first) => {
                    let block = block % blocks;
                    let range = summary.begin_of(block)..summary.end_of(block);
                    prop_assert!(range.contains(&block));
                    summary.note(block, first);
                    due.retain(|(known, _)| known.start < range.start || known.end > range.end);
                    due.push((range, first.unwrap_or(i64::MAX)));
                }
            }
        }
        let mut block = 0;
        while block < blocks {
            let next = summary.next_due(block, blocks, now);
            while block < next {
                let end = summary.end_of(block).min(next);
                let covered = due.iter().filter(|(known, _)| known.start < end && block < known.end);
                let known: Vec<_> = covered.collect();
                prop_assert!(!known.is_empty(), "never read: {block}");
                for (range, first) in known {
                    // Up to a second later, as ranges are due in whole seconds.
                    prop_assert!(*first > now - SECOND, "{range:?} is due at {first}");
                }
                block = end;
            }
            block = summary.end_of(block.min(blocks - 1));
        }
    }
}

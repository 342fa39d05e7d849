//! C7: which tables were written to, by marks that tables may share.

use super::mark_number;
use super::write_marks::{Marked, each_written};
use crate::worker::queue::schedule::Writes;
use std::cell::RefCell;
use std::collections::BTreeSet;

const DATABASE: u32 = 5;

/// Two tables that share a mark, and one that does not.
fn sharing() -> [u32; 3] {
    let first = 16_384;
    let mark = mark_number(DATABASE, first);
    let other = |same: bool| move |&table: &u32| (mark_number(DATABASE, table) == mark) == same;
    let mut tables = first + 1..u32::MAX;
    let [second, third] = [true, false].map(|same| tables.find(other(same)).expect("a table"));
    [first, second, third]
}

fn written(tables: &[Marked], marks: &[usize]) -> BTreeSet<u32> {
    // A mark is cleared by being taken.
    let left = RefCell::new(marks.to_vec());
    let take = |mark: usize| {
        let mut left = left.borrow_mut();
        let any = left.contains(&mark);
        left.retain(|&other| other != mark);
        Writes {
            any,
            kept_ts: false,
        }
    };
    let mut found = BTreeSet::new();
    each_written(tables, take, |table, _| {
        found.insert(table.relid);
    });
    found
}

#[test]
fn all_that_share_a_mark_are_told() {
    let [first, second, third] = sharing();
    // A partition is marked by its parent.
    let partition = third + 1;
    let mut tables = [
        (first, first),
        (second, second),
        (third, third),
        (partition, third),
    ]
    .map(|(relid, labelled_table)| Marked {
        mark: mark_number(DATABASE, labelled_table),
        relid,
        shortest: 0,
    });
    tables.sort_unstable();
    let mark = |table| mark_number(DATABASE, table);
    let some = written(&tables, &[mark(first)]);
    assert_eq!(some, BTreeSet::from([first, second]));
    let others = written(&tables, &[mark(third)]);
    assert_eq!(others, BTreeSet::from([third, partition]));
    assert!(written(&tables, &[]).is_empty());
}

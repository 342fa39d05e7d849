//! C21: the order of the builder's steps, from every state that it can be ended in.

use super::build_plan::{Need, Standing, Statement, Step, Work, pause};

fn statement(text: &str) -> Statement {
    Statement {
        table: 1,
        text: text.to_owned(),
    }
}

fn some(text: &str) -> Vec<Statement> {
    vec![statement(text)]
}

fn everything() -> Work {
    Work {
        is_on: true,
        left_over: some("drop invalid"),
        missing: some("create"),
        joined: some("join"),
        checks: some("validate"),
        is_label_stale: true,
    }
}

#[test]
fn steps_come_in_this_order() {
    assert_eq!(
        everything().next(),
        Step::Concurrently(statement("drop invalid"))
    );
    let work = || Work {
        left_over: vec![],
        ..everything()
    };
    assert_eq!(work().next(), Step::Concurrently(statement("create")));
    let work = || Work {
        missing: vec![],
        ..work()
    };
    assert_eq!(work().next(), Step::Join(statement("join")));
    let work = || Work {
        joined: vec![],
        ..work()
    };
    assert_eq!(work().next(), Step::Validate(statement("validate")));
    let work = || Work {
        checks: vec![],
        ..work()
    };
    assert_eq!(work().next(), Step::Record);
    let work = Work {
        is_label_stale: false,
        ..work()
    };
    assert_eq!(work.next(), Step::Done);
}

#[test]
fn turned_off_only_what_was_left_behind_is_dropped() {
    let off = || Work {
        is_on: false,
        ..everything()
    };
    assert_eq!(off().next(), Step::Concurrently(statement("drop invalid")));
    let clean = Work {
        left_over: vec![],
        ..off()
    };
    assert_eq!(clean.next(), Step::Done);
}

#[test]
fn partitions_come_in_turn() {
    let work = Work {
        is_on: true,
        missing: vec![statement("first"), statement("second")],
        ..Work::default()
    };
    assert_eq!(work.next(), Step::Concurrently(statement("first")));
}

#[test]
fn pauses_grow_up_to_an_hour() {
    let pauses: Vec<i64> = [0, 1, 2, 3].map(|n| pause(n) / 1_000_000).to_vec();
    assert_eq!(pauses, [5, 5, 10, 20]);
    assert_eq!(pause(11), 3_600_000_000);
    assert_eq!(pause(u32::MAX), 3_600_000_000);
}

#[test]
fn states() {
    let failed = || Standing::Failed("disk full".to_owned());
    for (need, missing, standing, expected) in [
        (Need::None, true, Standing::Waiting, None),
        (Need::Never, true, Standing::Waiting, Some("none")),
        (Need::Never, false, Standing::Waiting, Some("ready")),
        (Need::Now, false, Standing::Waiting, Some("ready")),
        (Need::Now, true, Standing::Waiting, Some("missing")),
        (Need::Later, true, Standing::Waiting, Some("not needed")),
        (Need::Later, false, Standing::Waiting, Some("ready")),
        (Need::Pending, true, Standing::Waiting, Some("waiting")),
        (Need::Pending, true, Standing::Building, Some("building")),
        (Need::Now, false, Standing::Building, Some("building")),
        (Need::Pending, true, failed(), Some("failed: disk full")),
        // The index that failed is not the one that deletion goes by.
        (Need::Now, false, failed(), Some("ready")),
    ] {
        let shown = need.state(missing, standing);
        assert_eq!(shown.as_deref(), expected);
    }
}

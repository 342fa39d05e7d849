//! C21: the order of the builder's steps, from every state that it can be ended in.

use super::build_plan::{BuildNeed, BuildState, BuildStep, Statement, Work, pause};

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
        BuildStep::Concurrently(statement("drop invalid"))
    );
    let work = || Work {
        left_over: vec![],
        ..everything()
    };
    assert_eq!(work().next(), BuildStep::Concurrently(statement("create")));
    let work = || Work {
        missing: vec![],
        ..work()
    };
    assert_eq!(work().next(), BuildStep::Join(statement("join")));
    let work = || Work {
        joined: vec![],
        ..work()
    };
    assert_eq!(work().next(), BuildStep::Validate(statement("validate")));
    let work = || Work {
        checks: vec![],
        ..work()
    };
    assert_eq!(work().next(), BuildStep::Record);
    let work = Work {
        is_label_stale: false,
        ..work()
    };
    assert_eq!(work.next(), BuildStep::Done);
}

#[test]
fn turned_off_only_what_was_left_behind_is_dropped() {
    let off = || Work {
        is_on: false,
        ..everything()
    };
    assert_eq!(
        off().next(),
        BuildStep::Concurrently(statement("drop invalid"))
    );
    let clean = Work {
        left_over: vec![],
        ..off()
    };
    assert_eq!(clean.next(), BuildStep::Done);
}

#[test]
fn partitions_come_in_turn() {
    let work = Work {
        is_on: true,
        missing: vec![statement("first"), statement("second")],
        ..Work::default()
    };
    assert_eq!(work.next(), BuildStep::Concurrently(statement("first")));
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
    let failed = || BuildState::Failed("disk full".to_owned());
    for (need, missing, standing, expected) in [
        (BuildNeed::None, true, BuildState::Waiting, None),
        (BuildNeed::Never, true, BuildState::Waiting, Some("none")),
        (BuildNeed::Never, false, BuildState::Waiting, Some("ready")),
        (BuildNeed::Now, false, BuildState::Waiting, Some("ready")),
        (BuildNeed::Now, true, BuildState::Waiting, Some("missing")),
        (
            BuildNeed::Later,
            true,
            BuildState::Waiting,
            Some("not needed"),
        ),
        (BuildNeed::Later, false, BuildState::Waiting, Some("ready")),
        (
            BuildNeed::Pending,
            true,
            BuildState::Waiting,
            Some("waiting"),
        ),
        (
            BuildNeed::Pending,
            true,
            BuildState::Building,
            Some("building"),
        ),
        (
            BuildNeed::Now,
            false,
            BuildState::Building,
            Some("building"),
        ),
        (
            BuildNeed::Pending,
            true,
            failed(),
            Some("failed: disk full"),
        ),
        // The index that failed is not the one that deletion goes by.
        (BuildNeed::Now, false, failed(), Some("ready")),
    ] {
        let shown = need.state(missing, standing);
        assert_eq!(shown.as_deref(), expected);
    }
}

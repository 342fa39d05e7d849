//! C21: when the builder tries again, and what is said of it.

use super::build_plan::{BuildNeed, BuildState, pause};

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

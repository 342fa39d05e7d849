//! C7, complaint 4: the throttle: everything when idle, the least when busy, more when behind.

use super::throttle::{Bounds, Cause, Load, cause, effort, pause};
use proptest::prelude::*;
use std::time::Duration;

const BOUNDS: Bounds = Bounds {
    min_effort: 5.0,
    max_effort: 100.0,
    max_lag: Duration::from_secs(600),
    max_replica_lag: Some(Duration::from_secs(10)),
};

const IDLE: Load = Load {
    active: 0.0,
    cores: 4.0,
    replica_lag: Duration::ZERO,
    table_lag: Duration::ZERO,
    slowdown: 1.0,
};

fn with(change: impl FnOnce(&mut Load)) -> f64 {
    let mut load = IDLE;
    change(&mut load);
    effort(&load, &BOUNDS)
}

#[test]
fn an_idle_server_gives_everything() {
    assert_eq!(effort(&IDLE, &BOUNDS), 100.0);
    assert_eq!(with(|load| load.active = 1.0), 100.0);
}

#[test]
fn a_busy_server_gives_the_least() {
    assert_eq!(with(|load| load.active = 2.0), 5.0);
    assert_eq!(with(|load| load.active = 100.0), 5.0);
}

#[test]
fn between_them_it_goes_down_steadily() {
    assert_eq!(with(|load| load.active = 1.5), 50.0);
}

#[test]
fn slow_batches_mean_busy_disks() {
    let slow = |active| {
        with(|load| {
            load.active = active;
            load.slowdown = 6.0;
        })
    };
    assert_eq!(slow(1.0), 50.0);
    assert_eq!(slow(0.0), 100.0, "nobody is there to be hindered");
}

#[test]
fn standbys_that_fall_behind_are_waited_for() {
    let behind = |load: &mut Load| load.replica_lag = Duration::from_secs(11);
    assert_eq!(with(behind), 5.0);
    let mut load = IDLE;
    behind(&mut load);
    let bounds = Bounds {
        max_replica_lag: None,
        ..BOUNDS
    };
    assert_eq!(effort(&load, &bounds), 100.0);
}

#[test]
fn a_table_too_far_behind_is_given_more() {
    let busy = |lag| {
        with(|load| {
            load.active = 100.0;
            load.table_lag = Duration::from_secs(lag);
        })
    };
    assert_eq!(busy(600), 5.0);
    assert_eq!(busy(900), 5.0 + 95.0 * 0.25);
    assert_eq!(busy(1200), 52.5);
    assert_eq!(busy(1_000_000), 52.5);
}

/// `ttl.progress` names what lowers the effort: in the order in which it does.
#[test]
fn the_cause_of_a_pause() {
    let why = |change: fn(&mut Load)| {
        let mut load = IDLE;
        change(&mut load);
        cause(&load, &BOUNDS)
    };
    assert_eq!(why(|_| ()), Cause::Limit);
    assert_eq!(why(|load| load.active = 1.5), Cause::Clients);
    assert_eq!(
        why(|load| (load.active, load.slowdown) = (0.6, 4.0)),
        Cause::Disks
    );
    assert_eq!(
        why(|load| (load.active, load.replica_lag) = (1.5, Duration::from_secs(11))),
        Cause::Standbys
    );
}

#[test]
fn pauses_follow_the_effort() {
    let worked = Duration::from_millis(50);
    assert_eq!(pause(worked, 100.0), Duration::ZERO);
    assert_eq!(pause(worked, 50.0), worked);
    assert_eq!(pause(worked, 5.0), Duration::from_millis(950));
    assert_eq!(pause(Duration::from_secs(100), 1.0), Duration::from_secs(5));
}

proptest! {
    /// Within the bounds whatever the load; no bound that contradicts another panics.
    #[test]
    fn effort_is_bounded(active in 0.0..1e6f64, cores in 1.0..512.0f64, lag in 0u64..1 << 40,
                         slowdown in 0.0..1e9f64, min in 0.0..200.0f64, max in 0.0..200.0f64) {
        let load = Load { active, cores, replica_lag: Duration::from_secs(lag / 7), table_lag: Duration::from_secs(lag), slowdown };
        let bounds = Bounds { min_effort: min, max_effort: max, ..BOUNDS };
        let effort = effort(&load, &bounds);
        prop_assert!(effort >= 1.0 && effort <= max.max(1.0));
        prop_assert!(pause(Duration::from_millis(10), effort) <= Duration::from_secs(5));
    }
}

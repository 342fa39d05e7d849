//! Which share of its time a worker deletes: what users leave over. Pure.

use std::time::Duration;

/// How busy the server is, as seen between two batches.
#[derive(Debug, Clone, Copy)]
pub(in crate::worker) struct Load {
    /// Running statements of clients, averaged.
    pub(in crate::worker) active: f64,
    /// Processors of this machine.
    pub(in crate::worker) cores: f64,
    /// By how much the slowest standby lags.
    pub(in crate::worker) replica_lag: Duration,
    /// By how much deletion in this table is behind.
    pub(in crate::worker) table_lag: Duration,
    /// This batch's time for a row relative to the shortest one seen.
    pub(in crate::worker) slowdown: f64,
}

/// The settings that bound it, in percent and as durations.
#[derive(Debug, Clone, Copy)]
pub(in crate::worker) struct Bounds {
    pub(in crate::worker) min_effort: f64,
    pub(in crate::worker) max_effort: f64,
    pub(in crate::worker) max_lag: Duration,
    /// `None`: standbys do not matter.
    pub(in crate::worker) max_replica_lag: Option<Duration>,
}

/// The part of the processors that is always left to users. Measured: with a quarter, two
/// clients of pgbench on two processors lost 17 % of their transactions to a backlog.
const RESERVE: f64 = 0.5;
/// The least share of its time that a worker deletes, in percent.
pub(in crate::worker) const LEAST: f64 = 1.0;
/// A batch this many times slower than the fastest one shows that the disks are busy.
const SLOW: f64 = 3.0;
/// The longest pause between two batches.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The share of its time, in percent, that a worker deletes.
///
/// All of it while a processor is free beyond the reserve; less as the reserve fills up, or
/// deletion slows down; the least when standbys lag. A table that is behind by more than
/// `max_lag` gets up to half, however busy the server is, as it would never be done otherwise.
pub(in crate::worker) fn effort(load: &Load, bounds: &Bounds) -> f64 {
    let max = bounds.max_effort.max(LEAST);
    let min = bounds.min_effort.clamp(LEAST, max);
    if standbys_lag(load, bounds) {
        return min;
    }
    let hindrance = if disks_are_busy(load) {
        SLOW / load.slowdown
    } else {
        1.0
    };
    let left_over = max * spare(load) * hindrance;
    let behind = load.table_lag.as_secs_f64() / bounds.max_lag.as_secs_f64().max(1.0);
    let urgent = min + (max - min) * 0.5 * (behind - 1.0).clamp(0.0, 1.0);
    left_over.max(urgent).clamp(min, max)
}

fn standbys_lag(load: &Load, bounds: &Bounds) -> bool {
    let most = bounds.max_replica_lag;
    most.is_some_and(|most| load.replica_lag > most)
}

/// The fraction of a processor that is idle.
fn spare(load: &Load) -> f64 {
    (load.cores * (1.0 - RESERVE) - load.active).clamp(0.0, 1.0)
}

fn disks_are_busy(load: &Load) -> bool {
    load.active > 0.5 && load.slowdown > SLOW
}

/// Why a worker pauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::worker) enum Cause {
    Standbys = 1,
    Clients,
    Disks,
    Limit,
}

impl Cause {
    /// As `ttl.progress` shows them.
    pub(in crate::worker) const ALL: [(Self, &'static str); 4] = [
        (Self::Standbys, "standbys"),
        (Self::Clients, "clients"),
        (Self::Disks, "disks"),
        (Self::Limit, "ttl.max_effort"),
    ];
}

/// What makes the effort less than it could be, most of all.
pub(in crate::worker) fn cause(load: &Load, bounds: &Bounds) -> Cause {
    if standbys_lag(load, bounds) {
        Cause::Standbys
    } else if spare(load) < 1.0 {
        Cause::Clients
    } else if disks_are_busy(load) {
        Cause::Disks
    } else {
        Cause::Limit
    }
}

/// The pause after a batch that took `worked`, at that effort.
pub(in crate::worker) fn pause(worked: Duration, effort: f64) -> Duration {
    worked
        .mul_f64((100.0 / effort.clamp(LEAST, 100.0) - 1.0).max(0.0))
        .min(LONGEST_PAUSE)
}

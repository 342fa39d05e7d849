//! What each worker is at, for `ttl.progress`. Each field stands for itself, as in
//! pg_stat_progress_*: who reads them all may see two moments.

use super::processes::{self, Kind, Process, STARTING};
use super::state::{self, TableKey};
use crate::pg::server::background;
use crate::worker::queue::throttle::Cause;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// In a worker's slot.
#[repr(C)]
pub(in crate::worker) struct Report {
    /// The table of its turn; 0 = none.
    table: AtomicU32,
    /// A [`Phase`].
    phase: AtomicU8,
    /// 0, or a [`Cause`] of the pause that is going on.
    pause: AtomicU8,
    /// The share of its time that it deletes, in hundredths of a percent; 0 = not known yet.
    effort: AtomicU32,
}

/// What a worker does in its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::worker) enum Phase {
    Idle,
    Preparing,
    DroppingPartition,
    SweepingIndex,
    SweepingHeap,
    LookingAhead,
}

impl Phase {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Idle, "idle"),
        (Self::Preparing, "preparing"),
        (Self::DroppingPartition, "dropping partition"),
        (Self::SweepingIndex, "sweeping index"),
        (Self::SweepingHeap, "sweeping heap"),
        (Self::LookingAhead, "looking ahead"),
    ];
}

impl Report {
    /// The table of its turn.
    pub(in crate::worker) fn table(&self) -> Option<u32> {
        Some(self.table.load(Ordering::Relaxed)).filter(|&table| table != 0)
    }

    /// A turn begins at a table, or, with 0, ends.
    pub(in crate::worker) fn set_table(&self, table: u32) {
        let phase = if table == 0 {
            Phase::Idle
        } else {
            Phase::Preparing
        };
        self.phase.store(phase as u8, Ordering::Relaxed);
        self.pause.store(0, Ordering::Relaxed);
        self.table.store(table, Ordering::Relaxed);
    }

    /// A new process has come into the slot.
    pub(in crate::worker) fn clear(&self) {
        self.set_table(0);
        self.effort.store(0, Ordering::Relaxed);
    }
}

/// Notes what this worker does next.
pub(in crate::worker) fn phase(phase: Phase) {
    if let Some(worker) = processes::own() {
        worker.report.phase.store(phase as u8, Ordering::Relaxed);
    }
}

/// Notes the share of its time that this worker deletes, in percent, and why it pauses, if it
/// does.
pub(in crate::worker) fn pace(effort: f64, cause: Option<Cause>) {
    if let Some(worker) = processes::own() {
        let report = &worker.report;
        // Conversions of floats saturate.
        let hundredths = (effort * 100.0).round() as u32;
        report.effort.store(hundredths, Ordering::Relaxed);
        let cause = cause.map_or(0, |cause| cause as u8);
        report.pause.store(cause, Ordering::Relaxed);
    }
}

/// A worker, as `ttl.progress` shows it.
pub(crate) struct WorkerReport {
    pub(crate) pid: i32,
    pub(crate) database: u32,
    /// The table of its turn.
    pub(crate) table: Option<u32>,
    pub(crate) phase: &'static str,
    /// Rows deleted in the pass that is going on.
    pub(crate) rows_deleted: Option<i64>,
    pub(crate) batch_size: Option<i32>,
    pub(crate) heap_blocks: Option<HeapBlocks>,
    /// In percent.
    pub(crate) effort: Option<f64>,
    pub(crate) waits_for: Option<&'static str>,
}

/// How far a heap sweep is.
#[derive(Clone, Copy)]
pub(crate) struct HeapBlocks {
    pub(crate) swept: i64,
    pub(crate) total: i64,
}

pub(crate) fn workers() -> Vec<WorkerReport> {
    processes::of(Kind::Worker).filter_map(show).collect()
}

fn show(worker: &Process) -> Option<WorkerReport> {
    let pid = worker.pid.load(Ordering::Acquire);
    let database = worker.database.load(Ordering::Relaxed);
    if pid == 0 || pid == STARTING || database == 0 || !background::is_alive(pid) {
        return None;
    }
    let table = worker.report.table();
    let phase = worker.report.phase.load(Ordering::Relaxed);
    let phase = Phase::ALL
        .into_iter()
        .find(|(known, _)| *known as u8 == phase);
    let pause = worker.report.pause.load(Ordering::Relaxed);
    let effort = worker.report.effort.load(Ordering::Relaxed);
    let state = table.and_then(|relid| state::get(TableKey { database, relid }));
    let progress = state.map(|state| state.progress);
    Some(WorkerReport {
        pid,
        database,
        table,
        phase: phase.map_or("idle", |(_, name)| name),
        rows_deleted: progress
            .map(|progress| i64::try_from(progress.pass_rows).unwrap_or(i64::MAX)),
        batch_size: progress.and_then(|progress| i32::try_from(progress.batch).ok()),
        heap_blocks: progress
            .filter(|progress| progress.next_block >= 0)
            .map(|progress| HeapBlocks {
                swept: progress.next_block,
                total: progress.end_block,
            }),
        effort: (effort != 0).then_some(f64::from(effort) / 100.0),
        waits_for: match table {
            None => Some("expired rows"),
            Some(_) => Cause::ALL
                .into_iter()
                .find(|(known, _)| *known as u8 == pause)
                .map(|(_, name)| name),
        },
    })
}

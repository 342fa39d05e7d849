//! What each worker is at, for `ttl.progress`.

pub(in crate::worker) use super::processes::Phase;
use super::processes::{self, Kind, Process, STARTING};
use super::state::{self, TableKey};
use crate::pg::server::background;
use crate::worker::queue::throttle::Cause;
use std::sync::atomic::Ordering;

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

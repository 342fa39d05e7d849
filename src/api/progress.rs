//! `ttl.worker_progress`, the function behind the view `ttl.progress`.

use crate::pg::values::Text;
use crate::pg::{background, roles};
use crate::worker::report;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// `ttl.worker_progress()`: what each worker is at. As in pg_stat_progress_*, of other databases
/// only those see more than the process who read all statistics.
#[pg_extern(sql = false)]
#[allow(
    clippy::type_complexity,
    reason = "the columns, as pgrx wants them named"
)]
fn worker_progress() -> TableIterator<
    'static,
    (
        name!(pid, i32),
        name!(datid, pg_sys::Oid),
        name!(relid, Option<pg_sys::Oid>),
        name!(phase, Option<Text>),
        name!(rows_deleted, Option<i64>),
        name!(batch_size, Option<i32>),
        name!(heap_blocks_total, Option<i64>),
        name!(heap_blocks_swept, Option<i64>),
        name!(effort, Option<f64>),
        name!(waits_for, Option<Text>),
    ),
> {
    let everything = roles::reads_all_statistics();
    let here = background::my_database().to_u32();
    let rows = report::workers().into_iter().map(move |worker| {
        let visible = everything || worker.database == here;
        let blocks = worker.heap_blocks.filter(|_| visible);
        (
            worker.pid,
            pg_sys::Oid::from(worker.database),
            worker.table.filter(|_| visible).map(pg_sys::Oid::from),
            visible.then(|| Text(worker.phase.to_owned())),
            worker.rows_deleted.filter(|_| visible),
            worker.batch_size.filter(|_| visible),
            blocks.map(|blocks| blocks.total),
            blocks.map(|blocks| blocks.swept),
            worker.effort.filter(|_| visible),
            worker
                .waits_for
                .filter(|_| visible)
                .map(|reason| Text(reason.to_owned())),
        )
    });
    TableIterator::new(rows.collect::<Vec<_>>())
}

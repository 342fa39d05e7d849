//! `ttl_internal.worker_progress`, the function behind the view `ttl.progress`.

use super::disclosure::shows_figures;
use crate::pg::abi::values::Text;
use crate::pg::catalog::roles;
use crate::pg::server::background;
use crate::pg::session::contained_errors;
use crate::store::cache;
use crate::worker::shared::worker_report;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// `ttl_internal.worker_progress()`: what each worker does. Of other databases, only members of
/// `pg_read_all_stats` see more than the process; the counts are for users who may see the table's
/// figures.
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
    let rows = worker_report::workers().into_iter().map(move |worker| {
        let visible = everything || worker.database == here;
        let counts = everything || visible && worker.table.is_some_and(shows_figures_of);
        let blocks = worker.heap_blocks.filter(|_| counts);
        (
            worker.pid,
            pg_sys::Oid::from(worker.database),
            worker.table.filter(|_| visible).map(pg_sys::Oid::from),
            visible.then(|| Text(worker.phase.to_owned())),
            worker.rows_deleted.filter(|_| counts),
            worker.batch_size.filter(|_| counts),
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

/// Whether the current user sees the figures of the table by whose policy rows expire in this table
/// or partition of the database.
fn shows_figures_of(table: u32) -> bool {
    let table = pg_sys::Oid::from(table);
    let shows = contained_errors::contain(|| {
        cache::policy(table).is_some_and(|it| shows_figures(it.labelled_table))
    });
    shows.unwrap_or(false)
}

//! `ttl.table_stats`, the function behind the view `ttl.stats`.

use crate::pg::{background, roles};
use crate::reaper::state::{self, Counters, TableState};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::collections::BTreeMap;

/// `ttl.table_stats()`: what deletion has done in this database since the server
/// started, one row for each table that carries a policy, partitions summed up.
/// Errors may show data, so only those see them who may see the table's rows:
/// its owner, and those who read all statistics.
#[pg_extern(sql = false)]
#[allow(
    clippy::type_complexity,
    reason = "the columns, as pgrx wants them named"
)]
fn table_stats() -> TableIterator<
    'static,
    (
        name!(relid, pg_sys::Oid),
        name!(rows_deleted, i64),
        name!(batches, i64),
        name!(passes, i64),
        name!(sub_passes, i64),
        name!(partitions_dropped, i64),
        name!(last_pass_at, Option<TimestampWithTimeZone>),
        name!(last_pass_ms, Option<f64>),
        name!(oldest_expiry, Option<TimestampWithTimeZone>),
        name!(backlog_estimate, i64),
        name!(blocked_rows, i64),
        name!(last_error, Option<String>),
        name!(last_error_at, Option<TimestampWithTimeZone>),
    ),
> {
    let mut sums: BTreeMap<u32, (Counters, Option<TableState>)> = BTreeMap::new();
    for state in state::tables_of(background::my_database().to_u32()) {
        let (sum, error) = sums.entry(state.holder).or_default();
        sum.add(&state.counters);
        sum.backlog += state.counters.backlog;
        sum.blocked_rows += state.counters.blocked_rows;
        sum.oldest_expiry = earlier(sum.oldest_expiry, state.counters.oldest_expiry);
        if state.counters.last_error_at > sum.last_error_at {
            sum.last_error_at = state.counters.last_error_at;
            *error = Some(state);
        }
    }
    let everything = roles::reads_all_statistics();
    let user = roles::current_user();
    let rows = sums.into_iter().map(move |(holder, (sum, error))| {
        let relid = pg_sys::Oid::from(holder);
        let visible = everything || roles::owns_relation(relid, user);
        let ran = sum.last_pass_at != 0;
        (
            relid,
            sum.rows_deleted,
            sum.batches,
            sum.passes,
            sum.sub_passes,
            sum.partitions_dropped,
            instant(sum.last_pass_at),
            ran.then_some(sum.last_pass_ms),
            instant(sum.oldest_expiry),
            sum.backlog,
            sum.blocked_rows,
            error.filter(|_| visible).and_then(|state| state.error()),
            instant(sum.last_error_at),
        )
    });
    TableIterator::new(rows.collect::<Vec<_>>())
}

/// The earlier of two instants, of which 0 means none.
fn earlier(a: i64, b: i64) -> i64 {
    match (a, b) {
        (0, other) | (other, 0) => other,
        (a, b) => a.min(b),
    }
}

/// 0 means none.
fn instant(micros: i64) -> Option<TimestampWithTimeZone> {
    TimestampWithTimeZone::try_from(micros)
        .ok()
        .filter(|_| micros != 0)
}

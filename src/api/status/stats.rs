//! `ttl_internal.table_stats`, the function behind the view `ttl.stats`.

use super::cluster_figures;
use super::disclosure::{shows_errors, shows_figures};
use crate::pg::abi::values::Text;
use crate::pg::server::background;
use crate::pg::session::contained_errors;
use crate::policy::Policy;
use crate::store::all_labels;
use crate::worker::shared::counters::Counters;
use crate::worker::shared::deletion_state::{self, Figures};
use crate::worker::shared::state::{self, TableState};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// `ttl_internal.table_stats()`: what deletion has done in this database, one row
/// for each table with a label, partitions summed up: the view joins nothing to it, as a join by a
/// wrong estimate would compare each table with each. Figures
/// and errors are NULL for users who may not see them; everyone sees what a table uses of the
/// workers that all tables share.
///
/// The backlog is NULL and `lag_is_known` is false where no worker deletes, or none has scanned the table yet.
/// `ttl.problems` says why.
#[pg_extern(sql = false)]
#[allow(
    clippy::type_complexity,
    reason = "the columns, as pgrx wants them named"
)]
fn table_stats() -> TableIterator<
    'static,
    (
        name!(relid, pg_sys::Oid),
        name!(rows_deleted, Option<i64>),
        name!(batches, Option<i64>),
        name!(passes, Option<i64>),
        name!(sub_passes, Option<i64>),
        name!(partitions_dropped, Option<i64>),
        name!(last_pass_at, Option<TimestampWithTimeZone>),
        name!(last_pass_ms, Option<f64>),
        name!(oldest_expiry, Option<TimestampWithTimeZone>),
        name!(lag_is_known, bool),
        name!(backlog_estimate, Option<i64>),
        name!(blocked_rows, Option<i64>),
        name!(time_used_ms, f64),
        name!(slow, bool),
        name!(last_error, Option<Text>),
        name!(last_error_at, Option<TimestampWithTimeZone>),
        name!(stats_reset, Option<TimestampWithTimeZone>),
    ),
> {
    let mut sums: BTreeMap<u32, (Counters, i64, bool, Option<TableState>)> = BTreeMap::new();
    let mut figures = BTreeMap::new();
    let mut off = BTreeSet::new();
    let is_halted = deletion_state::halted().is_some();
    for (labelled_table, policy) in all_labels() {
        sums.entry(labelled_table.to_u32()).or_default();
        if policy.as_ref().is_some_and(|policy| !policy.is_on()) {
            off.insert(labelled_table.to_u32());
        }
        let found =
            contained_errors::contain(|| figures_of(labelled_table, policy.as_deref()?, is_halted));
        figures.insert(labelled_table.to_u32(), found.ok().flatten());
    }
    for state in state::tables_of(background::my_database().to_u32()) {
        // Its policy has ended, or the table was dropped.
        let Some((sum, used, slow, error)) = sums.get_mut(&state.labelled_table) else {
            continue;
        };
        *used += state.habit.used;
        *slow |= state.habit.slow;
        sum.add(&state.counters);
        // No worker comes any more that would find that nothing is to go.
        if !off.contains(&state.labelled_table) {
            sum.blocked_rows += state.counters.blocked_rows;
        }
        if state.counters.last_error_at > sum.last_error_at {
            sum.last_error_at = state.counters.last_error_at;
            *error = Some(state);
        }
    }
    let rows = sums
        .into_iter()
        .map(move |(labelled_table, (sum, used, slow, error))| {
            let relid = pg_sys::Oid::from(labelled_table);
            let shows = shows_figures(relid);
            let count = |number: i64| shows.then_some(number);
            let time = |micros: i64| instant(micros).filter(|_| shows);
            let ran = sum.last_pass_at != 0;
            let known = figures.get(&labelled_table).copied().flatten();
            let known = known.filter(|_| shows);
            let oldest = known.map_or(0, |known| known.oldest_expiry);
            (
                relid,
                count(sum.rows_deleted),
                count(sum.batches),
                count(sum.passes),
                count(sum.sub_passes),
                count(sum.partitions_dropped),
                time(sum.last_pass_at),
                (ran && shows).then_some(sum.last_pass_ms),
                instant(oldest),
                // Without an index, a look finds that expired rows exist, but not since when.
                known.is_some_and(|known| known.backlog == Some(0) || oldest != 0),
                known.and_then(|known| known.backlog),
                count(sum.blocked_rows),
                used as f64 / 1000.0,
                slow,
                error
                    .filter(|_| shows_errors(relid))
                    .and_then(|state| state.error.get())
                    .map(Text),
                time(sum.last_error_at),
                time(sum.reset_at),
            )
        });
    TableIterator::new(rows.collect::<Vec<_>>())
}

/// The sum over all tables that follow the policy, of a distributed table over those of all nodes; `None` if one of them is
/// unknown.
pub(in crate::api) fn figures_of(
    labelled_table: pg_sys::Oid,
    policy: &Policy,
    is_halted: bool,
) -> Option<Figures> {
    let mut sum = Figures {
        backlog: Some(0),
        oldest_expiry: 0,
    };
    if !policy.is_on() {
        return Some(sum);
    }
    if cluster_figures::is_elsewhere(labelled_table) {
        return cluster_figures::of(labelled_table);
    }
    let tables = deletion_state::expiring_by(labelled_table, policy);
    let waits = is_halted || policy.restored;
    let is_unscanned = waits && !tables.is_empty();
    for table in tables {
        let figures = deletion_state::of(table).figures?;
        sum.backlog = sum.backlog.zip(figures.backlog).map(|(a, b)| a + b);
        sum.oldest_expiry = earlier(sum.oldest_expiry, figures.oldest_expiry);
    }
    match is_unscanned {
        true => sum.outdated(background::now()),
        false => Some(sum),
    }
}

/// The earlier of two instants; 0 means none.
fn earlier(a: i64, b: i64) -> i64 {
    match (a, b) {
        (0, other) | (other, 0) => other,
        (a, b) => a.min(b),
    }
}

/// 0 means none.
pub(in crate::api) fn instant(micros: i64) -> Option<TimestampWithTimeZone> {
    TimestampWithTimeZone::try_from(micros)
        .ok()
        .filter(|_| micros != 0)
}

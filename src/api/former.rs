//! The functions that the SQL objects of 0.1.0 call and those of 0.2.0 do not: between the restart
//! with a new library and ALTER EXTENSION … UPDATE they do as they did, with the defaults of what
//! they lack (docs/decisions/0054-upgrades.md). They go when 0.1.0 is no longer supported.

use super::enable::enable_0_2;
use super::mongo::{coll_mod_0_2, create_index_0_2};
use super::set_default::set_default_0_2;
use super::stats::table_stats_0_2;
use super::ttl_index::expire_index_0_2;
use crate::pg::fmgr;
use crate::pg::values::{Json, Text};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::prelude::*;
use pgrx::{AnyElement, pg_sys};
use std::ffi::CStr;

#[pg_extern(sql = false)]
#[allow(
    clippy::too_many_arguments,
    reason = "the arguments of the SQL function"
)]
fn enable(
    rel: Option<pg_sys::Oid>,
    default_ttl: Option<i32>,
    ts_column: Option<&CStr>,
    ttl_column: Option<&CStr>,
    document_column: Option<&CStr>,
    index: Option<Text>,
    drop_partitions: Option<bool>,
    hidden: Option<bool>,
    ts_granularity: Option<i32>,
) {
    enable_0_2(
        rel,
        default_ttl,
        ts_column,
        ttl_column,
        document_column,
        index,
        drop_partitions,
        hidden,
        ts_granularity,
        Some(false),
        Some(false),
    );
}

#[pg_extern(sql = false)]
fn set_default(rel: Option<pg_sys::Oid>, default_ttl: Option<i32>, revive_expired: Option<bool>) {
    set_default_0_2(rel, default_ttl, revive_expired, Some(false));
}

#[pg_extern(sql = false)]
fn expire_index(
    index: Option<pg_sys::Oid>,
    expire_after_seconds: Option<i32>,
    drop_partitions: Option<bool>,
    hidden: Option<bool>,
    revive_expired: Option<bool>,
) {
    expire_index_0_2(
        index,
        expire_after_seconds,
        drop_partitions,
        hidden,
        revive_expired,
        Some(false),
    );
}

#[pg_extern(sql = false)]
fn create_index(
    rel: Option<pg_sys::Oid>,
    keys: Option<AnyElement>,
    options: Option<AnyElement>,
    hidden: Option<bool>,
) -> Json {
    create_index_0_2(rel, keys, options, hidden, Some(false))
}

#[pg_extern(sql = false)]
fn coll_mod(rel: Option<pg_sys::Oid>, command: Option<AnyElement>) -> Json {
    coll_mod_0_2(rel, command, Some(false))
}

/// Without `stats_reset`.
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
    ),
> {
    TableIterator::new(table_stats_0_2().map(
        |(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, _)| {
            (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
        },
    ))
}

fmgr::finfo_v1!(pg_finfo_ttl_live_or_removed);

/// `ttl.live_or_removed(relation oid, place tid, live boolean) RETURNS boolean`: no query calls it
/// any more.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_live_or_removed(
    _fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    pg_sys::Datum::from(true)
}

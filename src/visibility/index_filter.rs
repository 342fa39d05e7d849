//! The functions by which rows expire by TTL indexes (M2, M3). They run once for each
//! row, like those of [`super::filter`].

use super::filter::time_of;
use crate::pg::abi::fmgr;
use crate::pg::exec::call::{Argument, Array, Call};
use crate::policy;
use pgrx::pg_sys;
use pgrx::prelude::*;

fmgr::finfo_v1!(
    pg_finfo_ttl_live_at,
    pg_finfo_ttl_live_at_date,
    pg_finfo_ttl_earliest,
    pg_finfo_ttl_earliest_date,
    pg_finfo_ttl_evaluate_first,
    pg_finfo_ttl_index_expires_at,
    pg_finfo_ttl_index_expires_at_date,
);

/// `ttl.live_at(date timestamptz, expire_after_seconds integer) RETURNS boolean` (M2); also for
/// `timestamp`, read as UTC.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_live_at(call: Call<'_, (i64, i32)>) -> pg_sys::Datum {
    let (date, seconds) = call.args();
    is_live(date, seconds, time_of(&call))
}

/// `ttl.live_at(date date, expire_after_seconds integer) RETURNS boolean` (M2).
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_live_at_date(call: Call<'_, (i32, i32)>) -> pg_sys::Datum {
    let (date, seconds) = call.args();
    is_live(date.map(policy::instant_of_day), seconds, time_of(&call))
}

#[inline]
fn is_live(date: Option<i64>, seconds: Option<i32>, now: i64) -> pg_sys::Datum {
    // NULL seconds: nothing expires.
    let live = seconds.is_none_or(|seconds| policy::is_live_by_index(date, seconds, now));
    pg_sys::Datum::from(live)
}

/// `ttl.index_expires_at(date timestamptz, expire_after_seconds integer) RETURNS
/// timestamptz`: when a row expires by a TTL index; 'infinity' = never. Also for
/// `timestamp`, as [`ttl_live_at`].
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_index_expires_at(call: Call<'_, (i64, i32)>) -> pg_sys::Datum {
    let (date, seconds) = call.args();
    pg_sys::Datum::from(policy::index_expiry(date, seconds.unwrap_or(-1)))
}

/// `ttl.index_expires_at(date date, expire_after_seconds integer) RETURNS timestamptz`.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_index_expires_at_date(
    call: Call<'_, (i32, i32)>,
) -> pg_sys::Datum {
    let (date, seconds) = call.args();
    let date = date.map(policy::instant_of_day);
    pg_sys::Datum::from(policy::index_expiry(date, seconds.unwrap_or(-1)))
}

/// `ttl.earliest(dates timestamptz[]) RETURNS timestamptz` (M3): NULL if the array has no date;
/// also for `timestamp[]`, read as UTC. STRICT.
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_earliest(call: Call<'_, (Array<'_, i64>,)>) -> pg_sys::Datum {
    earliest(call, |instant| instant)
}

/// `ttl.earliest(dates date[]) RETURNS timestamptz` (M3): midnight in UTC. STRICT.
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_earliest_date(
    call: Call<'_, (Array<'_, i32>,)>,
) -> pg_sys::Datum {
    earliest(call, policy::instant_of_day)
}

fn earliest<T: Argument>(
    call: Call<'_, (Array<'_, T>,)>,
    instant: impl Fn(T) -> i64,
) -> pg_sys::Datum {
    let (dates,) = call.args();
    let instants =
        |dates: Array<'_, T>| policy::earliest(dates.elements().map(|date| date.map(&instant)));
    match dates.and_then(instants) {
        Some(instant) => pg_sys::Datum::from(instant),
        None => call.null(),
    }
}

/// `ttl_internal.evaluate_first(condition boolean) RETURNS boolean`: its argument. STRICT. Its support
/// function makes it free, with its argument, so that the planner puts it before all other
/// conditions: no function of a user sees a row for which it is false.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_evaluate_first(call: Call<'_, (bool,)>) -> pg_sys::Datum {
    let (condition,) = call.args();
    pg_sys::Datum::from(condition.unwrap_or(false))
}

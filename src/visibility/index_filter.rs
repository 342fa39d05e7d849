//! The functions by which rows expire by TTL indexes (M2, M3). They run once for each
//! row, like those of [`super::filter`].

use crate::clock::moment;
use crate::pg::fmgr::{self, arg, arg_int4, arg_timestamptz};
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
///
/// # Safety
/// Called by PostgreSQL's function manager with two arguments.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_live_at(
    fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: as declared in SQL.
    unsafe { is_live(fcinfo, arg_timestamptz(fcinfo, 0)) }
}

/// `ttl.live_at(date date, expire_after_seconds integer) RETURNS boolean` (M2).
///
/// # Safety
/// Called by PostgreSQL's function manager with two arguments.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_live_at_date(
    fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: as declared in SQL.
    unsafe { is_live(fcinfo, arg_int4(fcinfo, 0).map(policy::instant_of_day)) }
}

/// # Safety
/// The second argument is a number of seconds.
#[inline]
unsafe fn is_live(fcinfo: pg_sys::FunctionCallInfo, date: Option<i64>) -> pg_sys::Datum {
    // SAFETY: as required of the caller.
    let (seconds, now) = unsafe { (arg_int4(fcinfo, 1), moment::of_call(fcinfo)) };
    // NULL seconds: nothing expires.
    let live = seconds.is_none_or(|seconds| policy::is_live_by_index(date, seconds, now));
    pg_sys::Datum::from(live)
}

/// `ttl.index_expires_at(date timestamptz, expire_after_seconds integer) RETURNS
/// timestamptz`: when a row expires by a TTL index; 'infinity' = never. Also for
/// `timestamp`, as [`ttl_live_at`].
///
/// # Safety
/// Called by PostgreSQL's function manager with two arguments.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_index_expires_at(
    fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: as declared in SQL.
    let (date, seconds) = unsafe { (arg_timestamptz(fcinfo, 0), arg_int4(fcinfo, 1)) };
    pg_sys::Datum::from(policy::index_expiry(date, seconds.unwrap_or(-1)))
}

/// `ttl.index_expires_at(date date, expire_after_seconds integer) RETURNS timestamptz`.
///
/// # Safety
/// Called by PostgreSQL's function manager with two arguments.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_index_expires_at_date(
    fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: as declared in SQL.
    let (date, seconds) = unsafe { (arg_int4(fcinfo, 0), arg_int4(fcinfo, 1)) };
    let date = date.map(policy::instant_of_day);
    pg_sys::Datum::from(policy::index_expiry(date, seconds.unwrap_or(-1)))
}

/// `ttl.earliest(dates timestamptz[]) RETURNS timestamptz` (M3): NULL if the array has no date;
/// also for `timestamp[]`, read as UTC. STRICT.
///
/// # Safety
/// Called by PostgreSQL's function manager with one array.
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_earliest(
    fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: as declared in SQL. Both types are eight bytes, passed by value.
    unsafe { earliest(fcinfo, |datum| datum.value() as i64) }
}

/// `ttl.earliest(dates date[]) RETURNS timestamptz` (M3): midnight in UTC. STRICT.
///
/// # Safety
/// Called by PostgreSQL's function manager with one array.
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_earliest_date(
    fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: as declared in SQL.
    unsafe { earliest(fcinfo, |datum| policy::instant_of_day(datum.value() as i32)) }
}

/// # Safety
/// The only argument is an array of elements that `instant` reads.
unsafe fn earliest(
    fcinfo: pg_sys::FunctionCallInfo,
    instant: impl Fn(pg_sys::Datum) -> i64,
) -> pg_sys::Datum {
    // SAFETY: as required of the caller; the elements live as long as the function's
    // memory context.
    unsafe {
        let date = arg(fcinfo, 0).and_then(|array| {
            let elements = fmgr::elements(array);
            policy::earliest(elements.map(|element| element.map(&instant)))
        });
        match date {
            Some(instant) => pg_sys::Datum::from(instant),
            None => fmgr::null(fcinfo),
        }
    }
}

/// `ttl.evaluate_first(condition boolean) RETURNS boolean`: its argument. STRICT. Its support
/// function makes it free, with its argument, so that the planner puts it before all other
/// conditions: no function of a user sees a row for which it is false.
///
/// # Safety
/// Called by PostgreSQL's function manager with one argument.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_evaluate_first(
    fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: as declared in SQL.
    unsafe { arg(fcinfo, 0) }.unwrap_or(pg_sys::Datum::from(false))
}

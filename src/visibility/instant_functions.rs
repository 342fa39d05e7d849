//! The functions that make instants of what tables have, for TTL indexes on expressions (M14).
//!
//! They run once for each row, unguarded: nothing in them needs dropping. What is no instant is NULL.

use crate::pg::abi::fmgr;
use crate::pg::exec::call::{Arguments, Call, TextArgument};
use crate::policy;
use pgrx::pg_sys::{self, Interval};

fmgr::finfo_v1!(
    pg_finfo_ttl_add_seconds,
    pg_finfo_ttl_add_seconds_double,
    pg_finfo_ttl_add_interval,
    pg_finfo_ttl_add_seconds_date,
    pg_finfo_ttl_add_seconds_double_date,
    pg_finfo_ttl_add_interval_date,
    pg_finfo_ttl_from_epoch,
    pg_finfo_ttl_from_epoch_double,
    pg_finfo_ttl_from_epoch_ms,
    pg_finfo_ttl_from_epoch_ms_double,
    pg_finfo_ttl_from_epoch_us,
    pg_finfo_ttl_from_epoch_us_double,
    pg_finfo_ttl_from_iso8601,
);

#[inline(always)]
fn result<A: Arguments>(call: &Call<'_, A>, instant: Option<i64>) -> pg_sys::Datum {
    match instant {
        Some(instant) => pg_sys::Datum::from(instant),
        None => call.null(),
    }
}

/// `ttl.add_seconds(date timestamptz, seconds bigint) RETURNS timestamptz`; also of `timestamp`.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_add_seconds(call: Call<'_, (i64, i64)>) -> pg_sys::Datum {
    let (date, seconds) = call.args();
    let sum = date.zip(seconds);
    result(
        &call,
        sum.and_then(|(date, by)| policy::add_seconds(date, by)),
    )
}

/// `ttl.add_seconds(date timestamptz, seconds double precision) RETURNS timestamptz`; also of
/// `timestamp`.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_add_seconds_double(
    call: Call<'_, (i64, f64)>,
) -> pg_sys::Datum {
    let (date, seconds) = call.args();
    let sum = date.zip(seconds);
    let sum = sum.and_then(|(date, by)| policy::add_fractional_seconds(date, by));
    result(&call, sum)
}

/// `ttl.add_interval(date timestamptz, by interval) RETURNS timestamptz`; also of `timestamp`.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_add_interval(call: Call<'_, (i64, Interval)>) -> pg_sys::Datum {
    let (date, by) = call.args();
    let sum = date.zip(by).and_then(|(date, by)| add(date, by));
    result(&call, sum)
}

fn add(date: i64, by: Interval) -> Option<i64> {
    policy::add_interval(date, by.month, by.day, by.time)
}

/// `ttl.add_seconds(date date, seconds bigint) RETURNS timestamp`.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_add_seconds_date(call: Call<'_, (i32, i64)>) -> pg_sys::Datum {
    let (date, seconds) = call.args();
    let sum = date.map(policy::instant_of_day).zip(seconds);
    result(
        &call,
        sum.and_then(|(date, by)| policy::add_seconds(date, by)),
    )
}

/// `ttl.add_seconds(date date, seconds double precision) RETURNS timestamp`.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_add_seconds_double_date(
    call: Call<'_, (i32, f64)>,
) -> pg_sys::Datum {
    let (date, seconds) = call.args();
    let sum = date.map(policy::instant_of_day).zip(seconds);
    let sum = sum.and_then(|(date, by)| policy::add_fractional_seconds(date, by));
    result(&call, sum)
}

/// `ttl.add_interval(date date, by interval) RETURNS timestamp`.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_add_interval_date(
    call: Call<'_, (i32, Interval)>,
) -> pg_sys::Datum {
    let (date, by) = call.args();
    let sum = date.map(policy::instant_of_day).zip(by);
    result(&call, sum.and_then(|(date, by)| add(date, by)))
}

/// `ttl.from_epoch(seconds bigint) RETURNS timestamptz`.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_from_epoch(call: Call<'_, (i64,)>) -> pg_sys::Datum {
    let (units,) = call.args();
    result(&call, units.and_then(|units| policy::from_epoch(units, 1)))
}

/// `ttl.from_epoch(seconds double precision) RETURNS timestamptz`.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_from_epoch_double(call: Call<'_, (f64,)>) -> pg_sys::Datum {
    let (units,) = call.args();
    let instant = units.and_then(|units| policy::from_fractional_epoch(units, 1));
    result(&call, instant)
}

/// `ttl.from_epoch_ms(milliseconds bigint) RETURNS timestamptz`.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_from_epoch_ms(call: Call<'_, (i64,)>) -> pg_sys::Datum {
    let (units,) = call.args();
    let instant = units.and_then(|units| policy::from_epoch(units, 1000));
    result(&call, instant)
}

/// `ttl.from_epoch_ms(milliseconds double precision) RETURNS timestamptz`.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_from_epoch_ms_double(call: Call<'_, (f64,)>) -> pg_sys::Datum {
    let (units,) = call.args();
    let instant = units.and_then(|units| policy::from_fractional_epoch(units, 1000));
    result(&call, instant)
}

/// `ttl.from_epoch_us(microseconds bigint) RETURNS timestamptz`.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_from_epoch_us(call: Call<'_, (i64,)>) -> pg_sys::Datum {
    let (units,) = call.args();
    let instant = units.and_then(|units| policy::from_epoch(units, 1_000_000));
    result(&call, instant)
}

/// `ttl.from_epoch_us(microseconds double precision) RETURNS timestamptz`.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_from_epoch_us_double(call: Call<'_, (f64,)>) -> pg_sys::Datum {
    let (units,) = call.args();
    let instant = units.and_then(|units| policy::from_fractional_epoch(units, 1_000_000));
    result(&call, instant)
}

/// `ttl.from_iso8601(text text) RETURNS timestamptz`.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_from_iso8601(
    call: Call<'_, (TextArgument<'_>,)>,
) -> pg_sys::Datum {
    let (text,) = call.args();
    let instant = text.and_then(|text| policy::from_iso8601(text.bytes()));
    result(&call, instant)
}

//! Input and output of the type `ttl.seconds`, which all other types are cast to by way of their
//! text.

use crate::error::{Error, Result};
use crate::pg::abi::report::or_raise;
use crate::pg::abi::{encoding, fmgr};
use crate::pg::catalog;
use crate::pg::session::rewording;
use crate::policy::{self, NotSeconds};
use pgrx::datum::Interval;
use pgrx::prelude::*;
use pgrx::{IntoDatum, PgSqlErrorCode, direct_function_call, pg_sys};
use std::ffi::CStr;

/// `ttl_internal.seconds_in(cstring) RETURNS ttl.seconds`: a number is read as such, anything else as an
/// interval (C17). Raises 22023 for what is no whole number of seconds, and PostgreSQL's own error
/// for what is no interval. The range that applies is up to the function that takes it.
#[pg_extern(sql = false)]
fn seconds_in(text: &CStr) -> i32 {
    or_raise(read(text))
}

fmgr::finfo_v1!(
    pg_finfo_ttl_seconds_out,
    pg_finfo_ttl_seconds_recv,
    pg_finfo_ttl_seconds_send,
);

/// `ttl_internal.seconds_out(ttl.seconds) RETURNS cstring`. As an integer's, like the two below: functions
/// of our own, since PostgreSQL's each have one declaration.
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_seconds_out(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: the value is stored as an integer's.
    unsafe { pg_sys::int4out(call) }
}

/// `ttl_internal.seconds_recv(internal) RETURNS ttl.seconds`.
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_seconds_recv(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: the argument is what every such function gets.
    unsafe { pg_sys::int4recv(call) }
}

/// `ttl_internal.seconds_send(ttl.seconds) RETURNS bytea`.
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_seconds_send(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: the value is stored as an integer's.
    unsafe { pg_sys::int4send(call) }
}

const WRITE_SECONDS: &str =
    "Write a number of seconds, such as 3600, or an interval, such as '30 days'.";

/// Reads a number of seconds as it is written (C17).
pub(in crate::api) fn read(text: &CStr) -> Result<i32> {
    let shown = encoding::given(text);
    if !shown.contains(|c: char| c.is_ascii_digit()) && policy::seconds_of_number(&shown).is_none()
    {
        return Err(not_an_interval(&shown));
    }
    let read = policy::seconds_of_number(&shown).unwrap_or_else(|| {
        // SAFETY: the arguments of interval_in: text, no type of elements, no modifier.
        let interval = unsafe {
            let args = [
                text.into_datum(),
                pg_sys::InvalidOid.into_datum(),
                (-1).into_datum(),
            ];
            rewording::hinting(WRITE_SECONDS, || {
                direct_function_call::<Interval>(pg_sys::interval_in, &args)
            })
        };
        interval.map_or(Err(NotSeconds::NotFinite), |it| {
            let seconds = policy::seconds_of_interval(it.months(), it.days(), it.micros())?;
            if it.months() != 0 {
                count_as_days(&shown, seconds);
            }
            Ok(seconds)
        })
    });
    read.map_err(|why| refused(&shown, why))
}

/// As PostgreSQL's own error, with a HINT: an interval has a digit.
fn not_an_interval(text: &str) -> Error {
    let message = format!(
        "invalid input syntax for type interval: \"{}\"",
        clipped(text)
    );
    Error::new(PgSqlErrorCode::ERRCODE_INVALID_DATETIME_FORMAT, message).hint(WRITE_SECONDS)
}

/// Says how many days months and years are.
fn count_as_days(text: &str, seconds: i32) {
    let days = f64::from(seconds) / 86_400.0;
    let unit = if days == 1.0 { "day" } else { "days" };
    let message = format!("{} counts as {days} {unit}", catalog::quote_literal(text));
    Error::for_notice(message)
        .detail(
            "Months and years have no fixed length. A month counts as 31 days and a year as 366.",
        )
        .hint("To choose the number yourself, write days, such as '30 days'.")
        .notice();
}

/// Enough for what people write; a numeric can have thousands of digits.
const LONGEST: usize = 60;

fn clipped(text: &str) -> String {
    let mut shown: String = text.chars().take(LONGEST).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    shown
}

fn refused(text: &str, why: NotSeconds) -> Error {
    let shown = clipped(text);
    let (detail, hint) = match why {
        NotSeconds::Fraction => (
            "Fractions of a second are not supported.",
            "Write a whole number of seconds, such as 2.",
        ),
        NotSeconds::OutOfRange => (
            "The maximum is 2147483647 seconds (about 68 years).",
            "-1 means never, as a default or for a row.",
        ),
        NotSeconds::NotFinite => (
            "The value is not finite.",
            "-1 means never, as a default or for a row.",
        ),
        NotSeconds::Negative => (
            "It is a negative interval.",
            "The number -1 means never, as a default or for a row.",
        ),
    };
    let message = format!("invalid number of seconds: \"{shown}\"");
    Error::invalid(message).detail(detail).hint(hint)
}

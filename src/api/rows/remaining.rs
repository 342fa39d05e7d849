//! `ttl.remaining`: how long a row has to live.

use crate::api::policy::guard;
use crate::clock::now::now;
use crate::error::{Error, Result};
use crate::pg::abi::fmgr;
use crate::pg::abi::report::or_raise;
use crate::pg::catalog;
use crate::pg::exec::call::{Argument, Array, Call};
use crate::pg::exec::composite::{Columns, Record};
use crate::policy::{self, INFINITY, MINUS_INFINITY};
use crate::store::dates::DateKind;
use crate::store::{DateSource, Rule, TablePolicy, cache};
use pgrx::prelude::*;
use pgrx::{IntoDatum, direct_function_call_as_datum, pg_sys};

fmgr::finfo_v1!(pg_finfo_ttl_remaining);

/// `ttl.remaining(rec record) RETURNS interval`: how long a row of a table has to live, by the
/// table's policy and the time of the statement; NULL if it never expires. STRICT.
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_remaining(call: Call<'_, (Record<'_>,)>) -> pg_sys::Datum {
    let (row,) = call.args();
    let expiry = row.map_or(INFINITY, |row| or_raise(row.with(expiry_of)));
    interval_until(expiry).unwrap_or_else(|| call.null())
}

/// The time until then; `None` for never. What has expired at `-infinity` has no time left.
fn interval_until(expiry: i64) -> Option<pg_sys::Datum> {
    let now = now();
    let until = match expiry {
        INFINITY => return None,
        MINUS_INFINITY => now,
        until => until,
    };
    let times = [until.into_datum(), now.into_datum()];
    // SAFETY: the function takes two timestamps, for timestamptz as well.
    unsafe { direct_function_call_as_datum(pg_sys::timestamp_mi, &times) }
}

fn expiry_of(row: &Columns<'_>) -> Result<i64> {
    let relid = table_of(row, "ttl.remaining()")?;
    guard::governed(relid)?;
    // A policy that is not in force lets every row live.
    Ok(cache::policy(relid).map_or(INFINITY, |policy| by_policy(&policy, row)))
}

/// The table of whose type the row is; raises 42809 if it is of none.
pub(in crate::api) fn table_of(row: &Columns<'_>, function: &str) -> Result<pg_sys::Oid> {
    let relation = row.relation().filter(|&relid| catalog::is_table(relid));
    relation.ok_or_else(|| not_of_a_table(function))
}

/// When a row expires. M5: the earliest counts.
pub(in crate::api) fn by_policy(policy: &TablePolicy, row: &Columns<'_>) -> i64 {
    let by_clock = policy.expiring_clock().map_or(INFINITY, |clock| {
        // SAFETY: columns of these types, as a policy in force has them.
        let (ts, ttl) = unsafe {
            (
                row.value(clock.ts.attno).map(|ts| i64::of(ts)),
                clock
                    .ttl
                    .and_then(|ttl| row.value(ttl.attno))
                    .map(|ttl| i32::of(ttl)),
            )
        };
        policy::expires_at(ts, policy::effective_ttl(ttl, policy.label.default_ttl))
    });
    let by_rules = policy.rules.iter().map(|rule| by_rule(rule, row));
    by_rules.fold(by_clock, i64::min)
}

fn by_rule(rule: &Rule, row: &Columns<'_>) -> i64 {
    let applies = || {
        rule.predicate.as_ref().is_none_or(|predicate| {
            // SAFETY: the predicate's columns are the table's, as entry 1 of a range table.
            unsafe { row.holds(predicate.simplified(1)) == Some(true) }
        })
    };
    if rule.guards_expression() && !applies() {
        return INFINITY;
    }
    let date = match (date(rule, row), &rule.time_zone) {
        (Some(local), Some(zone)) => Some(policy::instant_of_local(local, zone.clock())),
        (date, _) => date,
    };
    let expiry = policy::index_expiry(date, rule.seconds);
    if expiry == INFINITY || applies() {
        expiry
    } else {
        INFINITY
    }
}

/// The date by which the row expires (M2, M3), in local time if the rule has a time zone.
fn date(rule: &Rule, row: &Columns<'_>) -> Option<i64> {
    let value = match &rule.key {
        DateSource::Column(column, _) => row.value(column.attno)?,
        // SAFETY: an expression on the table's columns, of a type that is passed by value.
        DateSource::Expression(expression) => unsafe { row.value_of(expression.simplified(1))? },
    };
    // SAFETY: `kind` and `is_array` are what the catalog says of the column's type.
    unsafe {
        match (rule.date.kind, rule.date.is_array) {
            (DateKind::Date, false) => Some(policy::instant_of_day(i32::of(value))),
            (_, false) => Some(i64::of(value)),
            (DateKind::Date, true) => policy::earliest(
                Array::<i32>::of(value)
                    .elements()
                    .map(|day| day.map(policy::instant_of_day)),
            ),
            (_, true) => policy::earliest(Array::<i64>::of(value).elements()),
        }
    }
}

fn not_of_a_table(function: &str) -> Error {
    Error::wrong_kind(format!("{function} needs a row of a table"))
    .detail(
        "A row of a view, a sub-query or a join does not say which table's time to live it has.",
    )
    .hint(format!(
        "Name the table's alias: SELECT {}(s) FROM sessions AS s.",
        function.trim_end_matches("()")
    ))
}

//! `ttl.revive`: brings expired rows back.

use crate::api::policy::{cluster, guard};
use crate::citus::{self, placements};
use crate::deletion::job::Job;
use crate::error::{Error, Result};
use crate::pg::abi::report::or_raise;
use crate::pg::abi::values::Text;
use crate::pg::catalog::{self, qualified_name, quote_identifier, roles};
use crate::pg::exec::query::{self, Sql};
use crate::pg::session::gate::{self, GateVisit};
use crate::pg::session::rewording;
use crate::store::predicate;
use crate::visibility::planned_statement;
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, pg_sys};

/// For a condition that is none.
const HINT: &str = "Write a condition as after WHERE, such as 'id = 5'.";

/// `ttl.revive(rel, condition) RETURNS bigint` (C25): an UPDATE by the table's owner of the expired
/// rows for which the condition holds. It stamps them anew.
#[pg_extern(sql = false)]
fn revive(rel: Option<pg_sys::Oid>, condition: Option<Text>) -> i64 {
    guard::check_writable(c"ttl.revive()");
    or_raise(guard::required(rel, "rel").and_then(|relid| bring_back(relid, condition)))
}

fn bring_back(relid: pg_sys::Oid, condition: Option<Text>) -> Result<i64> {
    guard::check_owner(relid)?;
    if citus::is_shell(relid) {
        return bring_back_in_shards(relid, condition);
    }
    guard::lock(relid, pg_sys::RowExclusiveLock);
    let label = guard::governed(relid)?;
    let Some(ts) = label.policy.ts_column.as_deref().map(quote_identifier) else {
        return Err(expires_by_dates(relid));
    };
    let condition = match condition {
        Some(Text(text)) => checked(relid, text)?,
        None => "true".to_owned(),
    };
    let Some(job) = Job::of(relid) else {
        return Ok(0);
    };
    let update = job.update_expired(&ts, &condition);
    let revived = as_owner(relid, |visit| {
        query::execute(
            visit,
            Sql::naming(&[relid], &update).with_callers_condition(),
            &[],
        )
    });
    if let Some(count) = job.count_expired_by_rules(&condition) {
        let left = as_owner(relid, |visit| {
            query::first_value(
                visit,
                Sql::naming(&[relid], &count).with_callers_condition(),
                &[],
            )
        });
        tell_of_left(relid, left.map_or(0, |count| count.value() as i64));
    }
    Ok(i64::try_from(revived).unwrap_or(i64::MAX))
}

/// Runs `work` on the table with its expired rows. For its owner that is a statement of their own.
/// For a superuser or another member of the owning role it is one of the owner's, restricted: the
/// code in the table gets no more rights by who calls.
fn as_owner<T>(relid: pg_sys::Oid, work: impl FnOnce(&GateVisit) -> T) -> T {
    let owner = catalog::owner(relid);
    planned_statement::with_expired_rows_of(relid, || match owner {
        Some(owner) if owner != roles::current_user() => gate::visit(owner, work),
        _ => work(&gate::own_statement()),
    })
}

/// In each shard, in a transaction of its own. Copies of a reference table would get different times.
fn bring_back_in_shards(relid: pg_sys::Oid, condition: Option<Text>) -> Result<i64> {
    guard::governed(relid)?;
    if citus::is_replicated(relid) {
        let hint = "A longer time to live, with revive_expired => true, brings all of its expired rows back.";
        cluster::refuse_on_shell(relid, "ttl.revive()", hint)?;
    }
    let condition = condition
        .map(|Text(text)| checked(relid, text))
        .transpose()?;
    let condition = condition.map_or("NULL".to_owned(), |text| catalog::quote_literal(&text));
    let answers = citus::call(relid, "ttl.revive", &[condition])?;
    placements::sum(&answers)
}

/// The condition, if it is one expression: it stands in brackets, and must not end them. Raises the
/// parser's errors.
fn checked(relid: pg_sys::Oid, condition: String) -> Result<String> {
    let is_one = rewording::naming("condition", HINT, || {
        predicate::analyzed(relid, &condition, |_| ()).is_some()
    });
    if is_one {
        return Ok(condition);
    }
    Err(Error::new(
        PgSqlErrorCode::ERRCODE_SYNTAX_ERROR,
        "argument \"condition\" is not one expression",
    )
    .detail("It has another clause of a statement, or several expressions.")
    .hint(HINT))
}

fn expires_by_dates(relid: pg_sys::Oid) -> Error {
    Error::not_ready(format!(
        "rows of table {} cannot be revived",
        qualified_name(relid)
    ))
    .detail("They expire by the dates in TTL indexes only, which are not changed.")
    .hint(LONGER)
}

/// For rows that are expired by their dates.
const LONGER: &str =
    "More seconds bring them back: SELECT ttl.expire_index('...', ..., revive_expired => true).";

fn tell_of_left(relid: pg_sys::Oid, left: i64) {
    if left > 0 {
        Error::for_notice(format!(
            "{left} rows of table {} stay expired",
            catalog::qualified_name(relid)
        ))
        .detail("They have expired by the date in a TTL index.")
        .hint(LONGER)
        .notice();
    }
}

//! `ttl.preview`.

use crate::api::policy::counts::{self, Counts};
use crate::api::policy::guard;
use crate::citus;
use crate::error::{Error, Result};
use crate::pg::abi::report::or_raise;
use crate::pg::catalog::{qualified_name, quote_identifier, quote_literal};
use crate::policy::Policy;
use crate::store::{
    Inherited, TablePolicy, cache, label_provider, live_condition, rule_applies, rule_key,
};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::pg_sys;
use pgrx::prelude::*;
use serde_json::Value;
use std::collections::HashSet;
use std::str::FromStr;

/// `ttl.preview(rel, default_ttl)`: which rows a default would expire at once, together with the
/// present TTL indexes. Counts all rows on disk that the caller may SELECT.
#[pg_extern(sql = false)]
fn preview(
    rel: Option<pg_sys::Oid>,
    default_ttl: Option<i32>,
) -> TableIterator<
    'static,
    (
        name!(total, Option<i64>),
        name!(expired, Option<i64>),
        name!(oldest_expiry, Option<TimestampWithTimeZone>),
    ),
> {
    TableIterator::once(or_raise(
        guard::required(rel, "rel").and_then(|relid| count(relid, default_ttl)),
    ))
}

fn count(relid: pg_sys::Oid, default_ttl: Option<i32>) -> Result<Counts> {
    label_provider::check_relation(relid)?;
    default_ttl.map(Policy::check_default_ttl).transpose()?;
    let Inherited { policy, .. } = guard::governed(relid)?;
    let default_ttl = default_ttl.or(policy.default_ttl);
    if policy.ts_column.is_none() && default_ttl.is_some() {
        return Err(Error::no_clock(relid));
    }
    let Some(in_force) = cache::policy(relid) else {
        return Err(Error::no_policy(relid));
    };
    counts::check_selectable(relid)?;
    if in_force.is_shell() {
        return count_in_shards(relid, default_ttl);
    }
    let query = expiring(relid, &policy, &in_force, default_ttl);
    Ok(counts::of_query(relid, &query))
}

/// The sum over the shards; each copy of a shard has the same rows.
fn count_in_shards(relid: pg_sys::Oid, default_ttl: Option<i32>) -> Result<Counts> {
    let default = default_ttl.map_or("NULL".to_owned(), |seconds| seconds.to_string());
    let (mut seen, mut total, mut expired) = (HashSet::new(), 0, 0);
    let mut oldest: Option<TimestampWithTimeZone> = None;
    for answer in citus::call(relid, "ttl.preview", &[default])? {
        if !seen.insert(answer.shard) {
            continue;
        }
        let counts = answer.json()?;
        let number = |name: &str| counts.get(name).and_then(Value::as_i64).unwrap_or(0);
        total += number("total");
        expired += number("expired");
        let at = counts.get("oldest_expiry").and_then(Value::as_str);
        let at = at.and_then(|at| TimestampWithTimeZone::from_str(at).ok());
        oldest = match (oldest, at) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
    Ok((Some(total), Some(expired), oldest))
}

fn expiring(
    relid: pg_sys::Oid,
    policy: &Policy,
    in_force: &TablePolicy,
    default_ttl: Option<i32>,
) -> String {
    let mut expiries: Vec<String> = in_force
        .rules
        .iter()
        .map(|rule| {
            let ((date, _), index) = (rule_key(rule), rule.index.as_str());
            let date = match &rule.time_zone {
                Some(zone) => format!("ttl.in_time_zone({date}, {})", quote_literal(&zone.name)),
                None => date,
            };
            let expiry = format!("ttl.index_expires_at({date}, {})", rule.seconds);
            match rule.predicate {
                Some(_) => format!("CASE WHEN {} THEN {expiry} END", rule_applies(index)),
                None => expiry,
            }
        })
        .collect();
    // C4: with TTL off no row expires by the time column.
    if let (Some(default), Some(ts)) = (default_ttl, &policy.ts_column) {
        let ttl = policy
            .ttl_column
            .as_deref()
            .map_or("NULL".to_owned(), quote_identifier);
        let ts = quote_identifier(ts);
        expiries.push(format!("ttl.expires_at({ts}, {ttl}, {default})"));
    }
    let oldest = if expiries.is_empty() {
        "NULL::pg_catalog.timestamptz".to_owned()
    } else {
        format!(
            "pg_catalog.min(CASE WHEN LEAST({expiries}) OPERATOR(pg_catalog.<) \
             'infinity'::pg_catalog.timestamptz THEN LEAST({expiries}) END)",
            expiries = expiries.join(", ")
        )
    };
    format!(
        "SELECT pg_catalog.count(*), pg_catalog.count(*) FILTER (WHERE NOT {}), {oldest} FROM {}",
        live_condition(default_ttl),
        qualified_name(relid)
    )
}

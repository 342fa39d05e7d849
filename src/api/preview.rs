//! `ttl.preview`.

use super::guard;
use crate::error::{Result, TtlError, or_raise};
use crate::pg::catalog::{qualified_name, quote_identifier};
use crate::policy::Policy;
use crate::store::{Inherited, governing_label, label_provider, live_condition};
use crate::visibility::statement;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, pg_sys};

type Counts = (Option<i64>, Option<i64>, Option<TimestampWithTimeZone>);

/// `ttl.preview(rel, default_ttl)`: what a default would expire at once, of all
/// rows on disk. Reads the table with the caller's privileges.
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
    if let Some(value) = default_ttl {
        Policy::check_default_ttl(i64::from(value))
            .map_err(|_| TtlError::invalid_default_ttl(i64::from(value)))?;
    }
    let Some(Inherited { policy, .. }) = governing_label(relid) else {
        return Err(TtlError::no_policy(relid));
    };
    let query = query(relid, &policy, default_ttl.or(policy.default_ttl));
    statement::with_expired_rows_of(relid, || {
        Spi::connect(|client| {
            let row = client.select(&query, None, &[])?.first();
            Ok((row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .map_err(|error: pgrx::spi::Error| {
            TtlError::new(
                PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
                format!("preview failed: {error}"),
            )
        })
    })
}

fn query(relid: pg_sys::Oid, policy: &Policy, default_ttl: Option<i32>) -> String {
    let table = qualified_name(relid);
    // C4: with TTL off nothing is expired.
    let Some(default) = default_ttl else {
        return format!("SELECT pg_catalog.count(*), 0::bigint, NULL::timestamptz FROM {table}");
    };
    let ts = quote_identifier(&policy.ts_column);
    let ttl = policy
        .ttl_column
        .as_deref()
        .map_or("NULL".to_owned(), quote_identifier);
    format!(
        "SELECT pg_catalog.count(*), pg_catalog.count(*) FILTER (WHERE NOT {}), \
         pg_catalog.min(NULLIF(ttl.expires_at({ts}, {ttl}, {default}), 'infinity')) FROM {table}",
        live_condition(policy, default_ttl)
    )
}

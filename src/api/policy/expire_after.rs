//! `ttl.expire_after`: rows expire a number of seconds after the time in a column, whatever its type (M15).

use super::counts::{self, Counts};
use super::expire_index::{self, IndexOptions};
use super::mass_expiry::Consent;
use super::time_source::{IndexedTime, TimeSource};
use super::{guard, index_time_zone, indexes};
use crate::error::{Error, Result};
use crate::pg::abi::report::or_raise;
use crate::pg::abi::values::Text;
use crate::pg::catalog::{self, qualified_name, quote_identifier, quote_literal};
use crate::pg::session::rewording;
use crate::store::dates::DateType;
use crate::store::ttl_index::{TtlIndex, TtlKey, read as read_index};
use crate::store::{self, label_of, label_provider, predicate};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, pg_sys};
use std::ffi::CStr;

/// `ttl.expire_after(rel, column_name, after, unit, time_zone, hidden, revive_expired, confirm, concurrently)
/// RETURNS regclass`: makes a TTL index on the column, or on the instant that it means. Raises 42804
/// for a column of another type, 22023 for a unit that does not fit it, 42703 for no column, and the
/// errors of CREATE INDEX and `ttl.expire_index`.
#[pg_extern(sql = false)]
#[allow(
    clippy::too_many_arguments,
    reason = "the arguments of the SQL function"
)]
fn expire_after(
    rel: Option<pg_sys::Oid>,
    column_name: Option<&CStr>,
    after: Option<i32>,
    unit: Option<Text>,
    time_zone: Option<Text>,
    hidden: Option<bool>,
    revive_expired: Option<bool>,
    confirm: Option<bool>,
    concurrently: Option<bool>,
) -> pg_sys::Oid {
    guard::check_writable(c"ttl.expire_after()");
    or_raise(guard::required(rel, "rel").and_then(|relid| {
        let source = TimeSource::of(column_name, after, unit, time_zone)?;
        let options = IndexOptions {
            drop_partitions: None,
            hidden,
            revive_expired: guard::required(revive_expired, "revive_expired")?,
            time_zone: source.time_zone.clone(),
        };
        let mut call = source.call(relid) + &options.arguments();
        let concurrently = guard::required(concurrently, "concurrently")?;
        if concurrently {
            call += ", concurrently => true";
        }
        let consent = Consent::new(confirm, &call)?;
        guard::check_changeable(relid)?;
        if concurrently {
            // Before the lock, which makes writers wait.
            let key = source.key(relid)?;
            existing(relid, &key).ok_or_else(|| not_built(relid, &key, &call))?;
        }
        // The strongest lock that the trigger and the index take.
        guard::lock(relid, pg_sys::ShareRowExclusiveLock);
        guard::check_change(relid)?;
        let key = source.key(relid)?;
        let index = match existing(relid, &key) {
            Some(index) => index,
            None if concurrently => return Err(not_built(relid, &key, &call)),
            None => {
                let table = qualified_name(relid);
                let key = &key.expression;
                let statement = format!("CREATE INDEX ON {table} USING btree ({key})");
                // A generated column that is not stored.
                let code = PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED;
                rewording::hinting_at(code, ON_EXPRESSION, || indexes::create(relid, &statement))?
            }
        };
        refuse_second(relid, &source, index)?;
        expire_index::set_rule(index, Some(source.after), &options, &consent)?;
        Ok(index)
    }))
}

/// For a column that cannot be in an index.
const ON_EXPRESSION: &str =
    "Make the column STORED, or create an index on its expression and use ttl.expire_index().";

/// An index on the same, of all rows: a TTL index, or else any. It may have been built
/// concurrently.
fn existing(relid: pg_sys::Oid, key: &IndexedTime) -> Option<pg_sys::Oid> {
    let wanted = match key.column {
        Some(attno) => TtlKey::Column(attno),
        None => TtlKey::Expression(predicate::analyze_expression(relid, &key.expression)?),
    };
    let fits = |found: &TtlIndex| {
        found.is_valid && found.predicate.is_none() && found.key.is_like(&wanted)
    };
    let found = indexes::alike(relid, label_of(relid).as_ref(), fits);
    found.first().map(|(index, _)| *index)
}

/// Refuses a second time in the same column, as by another unit: rows would expire by whichever is earlier. One TTL index of
/// all rows on the column may be changed by its name.
fn refuse_second(relid: pg_sys::Oid, source: &TimeSource, chosen: pg_sys::Oid) -> Result<()> {
    let name = source.column.as_deref().unwrap_or_default();
    let (Some(column), Some(policy)) = (catalog::attribute(relid, name), label_of(relid)) else {
        return Ok(());
    };
    let is_on_column = |found: &TtlIndex| found.key.columns() == [column.attno];
    let other = policy
        .rules
        .iter()
        .filter_map(|rule| store::index_of(relid, &rule.index))
        .filter(|&index| index != chosen)
        .find(|&index| {
            matches!(read_index(index), Some(Ok(found)) if found.predicate.is_none() && is_on_column(&found))
        });
    let Some(other) = other else {
        return Ok(());
    };
    let index = qualified_name(other);
    let message = format!(
        "rows of table {} expire by column {} already, by TTL index {index}",
        qualified_name(relid),
        quote_identifier(name)
    );
    Err(
        Error::new(PgSqlErrorCode::ERRCODE_DUPLICATE_OBJECT, message)
            .detail("A row expires by the earliest of all TTL indexes.")
            .hint(format!(
                "To read the column in another way, first run: SELECT ttl.expire_index({}, NULL, revive_expired => true);",
                quote_literal(&index)
            )),
    )
}

/// `ttl.preview(rel, column_name, after, unit, time_zone)`: which rows `ttl.expire_after` would expire
/// at once. Counts all rows on disk that the caller may SELECT.
#[pg_extern(sql = false)]
fn preview_after(
    rel: Option<pg_sys::Oid>,
    column_name: Option<&CStr>,
    after: Option<i32>,
    unit: Option<Text>,
    time_zone: Option<Text>,
) -> TableIterator<
    'static,
    (
        name!(total, Option<i64>),
        name!(expired, Option<i64>),
        name!(oldest_expiry, Option<TimestampWithTimeZone>),
    ),
> {
    TableIterator::once(or_raise(guard::required(rel, "rel").and_then(|relid| {
        let source = TimeSource {
            previews: true,
            ..TimeSource::of(column_name, after, unit, time_zone)?
        };
        count(relid, &source)
    })))
}

fn count(relid: pg_sys::Oid, source: &TimeSource) -> Result<Counts> {
    let seconds = source.after;
    label_provider::check_relation(relid)?;
    counts::check_selectable(relid)?;
    let key = source.key(relid)?;
    let date = DateType {
        kind: key.date,
        is_array: false,
    };
    let present = existing(relid, &key).map(catalog::relation_name);
    let policy = label_of(relid);
    let present = present.and_then(|index| policy.as_ref()?.rule(&index).cloned());
    let zone = source.time_zone.as_deref();
    let zone = index_time_zone::choose(zone, present.as_ref(), date)?;
    let instant = match zone.name {
        Some(zone) => format!(
            "ttl.in_time_zone({}, {})",
            key.expression,
            quote_literal(&zone)
        ),
        None => key.expression,
    };
    let expiry = format!("ttl.index_expires_at({instant}, {seconds})");
    let query = format!(
        "SELECT pg_catalog.count(*), \
                pg_catalog.count(*) FILTER (WHERE NOT ttl.live_at({instant}, {seconds})), \
                pg_catalog.min({expiry}) FILTER (WHERE {expiry} OPERATOR(pg_catalog.<) 'infinity'::pg_catalog.timestamptz) \
           FROM {}",
        qualified_name(relid)
    );
    Ok(counts::of_query(relid, &query))
}

/// No function can build an index concurrently, as that takes several transactions.
fn not_built(relid: pg_sys::Oid, key: &IndexedTime, call: &str) -> Error {
    let (table, expression) = (qualified_name(relid), &key.expression);
    let message = format!("no index on ({expression}) of table {table} is ready to be used");
    let create = match catalog::is_partitioned(relid) {
        true => format!(
            "CREATE INDEX ON ONLY {table} ({expression}); For each partition, build an index with CREATE INDEX CONCURRENTLY and attach it with ALTER INDEX ATTACH PARTITION. Then run:"
        ),
        false => format!("CREATE INDEX CONCURRENTLY ON {table} ({expression});"),
    };
    Error::not_ready(message)
        .detail("CREATE INDEX CONCURRENTLY cannot run within a function.")
        .hint(format!("Run: {create} SELECT {call});"))
}

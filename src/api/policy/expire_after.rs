//! `ttl.expire_after`: rows expire a number of seconds after the time in a column, whatever its type (M15).

use super::counts::{self, Counts};
use super::expire_index::{self, IndexOptions, checked_seconds};
use super::mass_expiry::{Consent, shown};
use super::{cluster, guard, index_time_zone};
use crate::error::{Error, Result};
use crate::pg::abi::encoding;
use crate::pg::abi::report::or_raise;
use crate::pg::abi::values::Text;
use crate::pg::catalog::{self, Attribute, qualified_name, quote_identifier, quote_literal};
use crate::pg::catalog::{index, names};
use crate::policy::EpochUnit;
use crate::store::dates::{DateKind, DateType};
use crate::store::ttl_index::{TtlIndex, TtlKey, read as read_index};
use crate::store::{label_of, label_provider, predicate};
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
    let source = TimeSource::of(column_name, unit, time_zone);
    or_raise(guard::required(rel, "rel").and_then(|relid| {
        let seconds = checked_seconds(guard::required(after, "after")?, "after")?;
        let options = IndexOptions {
            drop_partitions: None,
            hidden,
            revive_expired: guard::required(revive_expired, "revive_expired")?,
            time_zone: source.time_zone.clone(),
        };
        let mut call = source.call(relid, seconds);
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
            None => create(relid, &key)?,
        };
        expire_index::set_rule(index, Some(seconds), &options, &consent)?;
        Ok(index)
    }))
}

/// The arguments that say what the time is.
struct TimeSource {
    column: Option<String>,
    unit: Option<String>,
    time_zone: Option<String>,
}

/// What the index is on.
struct IndexedTime {
    /// As SQL.
    expression: String,
    /// The column's number, if it is the column itself.
    column: Option<i16>,
    date: DateKind,
}

impl TimeSource {
    fn of(column: Option<&CStr>, unit: Option<Text>, time_zone: Option<Text>) -> Self {
        Self {
            column: column.map(encoding::from_server),
            unit: unit.map(|unit| unit.0),
            time_zone: time_zone.map(|zone| zone.0),
        }
    }

    /// The call so far, without the closing bracket.
    fn call(&self, relid: pg_sys::Oid, seconds: i32) -> String {
        let column = quote_literal(self.column.as_deref().unwrap_or_default());
        let mut call = format!("ttl.expire_after({}, {column}, {seconds}", shown(relid));
        for (name, value) in [("unit", &self.unit), ("time_zone", &self.time_zone)] {
            if let Some(value) = value {
                call += &format!(", {name} => {}", quote_literal(value));
            }
        }
        call
    }

    fn key(&self, relid: pg_sys::Oid) -> Result<IndexedTime> {
        let name = guard::required(self.column.as_deref(), "column_name")?;
        let column = catalog::attribute(relid, name).ok_or_else(|| no_column(relid, name))?;
        let quoted = quote_identifier(name);
        if let Some(date) = DateType::of(column.type_oid).filter(|date| !date.is_array) {
            return match &self.unit {
                Some(_) => Err(needless_unit(name, &column)),
                None => Ok(IndexedTime {
                    expression: quoted,
                    column: Some(column.attno),
                    date: date.kind,
                }),
            };
        }
        if !is_number(column.type_oid) {
            return Err(not_a_time(relid, name, &column));
        }
        let unit = self.unit.as_deref().ok_or_else(|| {
            let call = self.call(relid, 0);
            no_unit(name, &column, &call)
        })?;
        let unit = EpochUnit::from_name(unit).ok_or_else(|| unknown_unit(unit))?;
        Ok(IndexedTime {
            expression: format!("({}({quoted}))", unit.function()),
            column: None,
            date: DateKind::Timestamptz,
        })
    }
}

/// Whether numbers of this type can count seconds since 1970.
fn is_number(type_oid: pg_sys::Oid) -> bool {
    [
        pg_sys::INT4OID,
        pg_sys::INT8OID,
        pg_sys::NUMERICOID,
        pg_sys::FLOAT8OID,
    ]
    .contains(&type_oid)
}

/// An index on the same, of all rows: a TTL index, or else any. It may have been built
/// concurrently.
fn existing(relid: pg_sys::Oid, key: &IndexedTime) -> Option<pg_sys::Oid> {
    let wanted = match key.column {
        Some(attno) => TtlKey::Column(attno),
        None => TtlKey::Expression(predicate::analyze_expression(relid, &key.expression)?),
    };
    let fits = |found: &TtlIndex| {
        let like = TtlIndex {
            key: wanted.clone(),
            predicate: None,
            ..found.clone()
        };
        found.is_like(&like) && found.is_valid
    };
    let has_key =
        |index: &pg_sys::Oid| matches!(read_index(*index), Some(Ok(found)) if fits(&found));
    let policy = label_of(relid);
    let is_rule = |index: &pg_sys::Oid| {
        let name = catalog::relation_name(*index);
        policy
            .as_ref()
            .is_some_and(|policy| policy.rule(&name).is_some())
    };
    let mut found: Vec<pg_sys::Oid> = index::list(relid).into_iter().filter(has_key).collect();
    found.sort_by_key(|index| !is_rule(index));
    found.first().copied()
}

fn create(relid: pg_sys::Oid, key: &IndexedTime) -> Result<pg_sys::Oid> {
    let before = index::list(relid);
    let table = qualified_name(relid);
    let create = format!("CREATE INDEX ON {table} USING btree ({})", key.expression);
    cluster::alter(relid, &create)?;
    let mut after = index::list(relid).into_iter();
    let created = after.find(|index| !before.contains(index));
    created.ok_or_else(|| {
        Error::new(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "the index that was created is not there",
        )
    })
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
    let source = TimeSource::of(column_name, unit, time_zone);
    TableIterator::once(or_raise(guard::required(rel, "rel").and_then(|relid| {
        let seconds = checked_seconds(guard::required(after, "after")?, "after")?;
        count(relid, &source, seconds)
    })))
}

fn count(relid: pg_sys::Oid, source: &TimeSource, seconds: i32) -> Result<Counts> {
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
    let zone = index_time_zone::choose(zone, present.as_ref(), date, &qualified_name(relid))?;
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

fn no_column(relid: pg_sys::Oid, name: &str) -> Error {
    Error::new(
        PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
        format!(
            "column {} of table {} does not exist",
            quote_identifier(name),
            qualified_name(relid)
        ),
    )
    .hint("Name the column whose time rows expire after, as it is in pg_attribute.")
}

/// No function can build an index concurrently, as that takes several transactions.
fn not_built(relid: pg_sys::Oid, key: &IndexedTime, call: &str) -> Error {
    let (table, expression) = (qualified_name(relid), &key.expression);
    let message = format!("no index on ({expression}) of table {table} is ready to be used");
    let is_partitioned = catalog::class(relid)
        .is_some_and(|class| class.relkind == pg_sys::RELKIND_PARTITIONED_TABLE);
    let create = match is_partitioned {
        true => format!(
            "CREATE INDEX ON ONLY {table} ({expression}); then, for each partition, CREATE INDEX CONCURRENTLY and ALTER INDEX ... ATTACH PARTITION; then:"
        ),
        false => format!("CREATE INDEX CONCURRENTLY ON {table} ({expression});"),
    };
    Error::new(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message,
    )
    .detail("CREATE INDEX CONCURRENTLY cannot run within a function.")
    .hint(format!("Run: {create} SELECT {call});"))
}

/// "column c of type bigint"
fn typed(name: &str, column: &Attribute) -> String {
    format!(
        "column {} of type {}",
        quote_identifier(name),
        names::of_type(column.type_oid)
    )
}

fn needless_unit(name: &str, column: &Attribute) -> Error {
    let message = format!(
        "argument \"unit\" cannot be given for {}",
        typed(name, column)
    );
    Error::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message)
        .detail("A unit is of numbers that count from 1970.")
        .hint("Leave out \"unit\".")
}

fn no_unit(name: &str, column: &Attribute, call: &str) -> Error {
    let message = format!(
        "argument \"unit\" must be given for {}",
        typed(name, column)
    );
    Error::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message)
        .detail("Its numbers may be seconds, milliseconds or microseconds since 1970.")
        .hint(format!(
            "For seconds, run: SELECT {call}, unit => 'seconds');"
        ))
}

fn unknown_unit(unit: &str) -> Error {
    let message = format!("unrecognized value for argument \"unit\": \"{unit}\"");
    Error::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message)
        .hint("Available values: seconds, milliseconds, microseconds.")
}

/// 42804, with the way that there is.
pub(in crate::api) fn not_a_time(relid: pg_sys::Oid, name: &str, column: &Attribute) -> Error {
    let message = format!("cannot read a time from {}", typed(name, column));
    Error::new(PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH, message)
        .detail("Rows expire after a timestamptz, a timestamp, a date, or a number that counts from 1970.")
        .hint(way(relid, name, column.type_oid))
}

/// What to type for a column of a type that has no time.
pub(in crate::api) fn way(relid: pg_sys::Oid, name: &str, type_oid: pg_sys::Oid) -> String {
    let (table, column) = (qualified_name(relid), quote_identifier(name));
    match type_oid {
        type_oid if is_number(type_oid) => format!(
            "If it counts seconds since 1970, run: SELECT ttl.expire_after({}, {}, 0, unit => 'seconds'); or with unit => 'milliseconds'.",
            quote_literal(&table),
            quote_literal(name)
        ),
        pg_sys::TEXTOID | pg_sys::VARCHAROID => {
            let index = format!("{}_{name}_expiry", catalog::relation_name(relid));
            let shown = quote_literal(&index::qualified_name(relid, &index));
            format!(
                "For text in ISO 8601, run: CREATE INDEX {} ON {table} (ttl.from_iso8601({column})); SELECT ttl.expire_index({shown}, 0);",
                quote_identifier(&index)
            )
        }
        _ => format!(
            "Create an index on an expression that makes a timestamptz of it, CREATE INDEX ON {table} (...), and make that a TTL index by ttl.expire_index()."
        ),
    }
}

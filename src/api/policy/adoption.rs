//! Columns that a table has already and that get a meaning with its time to live: nothing of that is
//! silent.

use super::enable::Asked;
use super::mass_expiry::{self, Consent, shown};
use super::{expire_after, guard};
use crate::error::{Error, Result};
use crate::pg::abi::encoding;
use crate::pg::catalog::{self, names, qualified_name, quote_identifier, quote_literal};
use crate::pg::session::locks;
use crate::policy::is_creation_time;
use crate::store::dates::DateType;
use pgrx::{PgSqlErrorCode, pg_sys};

/// Looks at the columns that a new time to live takes over, before it does. Refuses without consent
/// what is likely a mistake. Returns what is to be said once it is done.
pub(in crate::api) fn look(
    relid: pg_sys::Oid,
    asked: &Asked,
    consent: &Consent,
) -> Result<Option<Error>> {
    let present = guard::own_policy(relid)?;
    if present.is_some_and(|policy| policy.ts_column.is_some()) {
        return Ok(None);
    }
    if let (Some(name), false) = (&asked.ts_column, asked.adds_named_columns)
        && catalog::attribute(relid, name).is_none()
        && !SYSTEM_COLUMNS.contains(&name.as_str())
    {
        return Err(no_such_column(relid, name));
    }
    if let Some(name) = &asked.ts_column
        && let Some(column) = catalog::attribute(relid, name)
        && column.type_oid != pg_sys::TIMESTAMPTZOID
    {
        return Err(of_another_type(relid, name, &column, asked));
    }
    if asked.document_column.clone().flatten().is_none() {
        let name = asked.ttl_column.clone().unwrap_or(Some("ttl".to_owned()));
        if let Some(name) = name {
            overrides(relid, &name, asked, consent)?;
        }
    }
    clock(relid, asked, consent)
}

/// PostgreSQL refuses to add them.
const SYSTEM_COLUMNS: &[&str] = &["ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"];

/// W9: a typing error would otherwise become a column.
fn no_such_column(relid: pg_sys::Oid, name: &str) -> Error {
    let (table, column) = (qualified_name(relid), quote_identifier(name));
    Error::new(
        PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
        format!("column {column} of table {table} does not exist"),
    )
    .detail("ttl.enable() adds a column for the time of the last modification only if none is named.")
    .hint(format!(
        "To add one of that name, run before: ALTER TABLE {table} ADD COLUMN {column} pg_catalog.timestamptz NOT NULL DEFAULT ttl.current_ts();"
    ))
}

/// W6: what there is to do with such a column.
fn of_another_type(
    relid: pg_sys::Oid,
    name: &str,
    column: &catalog::Attribute,
    asked: &Asked,
) -> Error {
    let table = qualified_name(relid);
    let wanted = names::of_type(pg_sys::TIMESTAMPTZOID);
    let message = format!("column \"{name}\" of table {table} is not of type {wanted}");
    let is_local = DateType::of(column.type_oid).is_some_and(|date| !date.is_array);
    let way = match is_local {
        true => format!(
            "To let rows expire after the time in the column, which stays as it is, run: SELECT ttl.expire_after({}, {}, {});",
            shown(relid),
            quote_literal(name),
            asked
                .default_ttl
                .filter(|&seconds| seconds > 0)
                .unwrap_or(86_400)
        ),
        false => expire_after::way(relid, name, column.type_oid),
    };
    Error::new(PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH, message)
        .detail("The time of the last modification, which ttl.enable() keeps in it, needs a column of exactly this type.")
        .hint(way)
}

/// W2: a column of that name that was not made for it.
fn overrides(relid: pg_sys::Oid, name: &str, asked: &Asked, consent: &Consent) -> Result<()> {
    let is_plain =
        |column: &catalog::Attribute| column.type_oid == pg_sys::INT4OID && !column.generated;
    if asked.ttl_column.is_some()
        || consent.confirmed
        || catalog::attribute(relid, name).filter(is_plain).is_none()
    {
        return Ok(());
    }
    // A table that has `_ts`, too, was made for a time to live, as by a dump of its schema.
    let clock = catalog::attribute(relid, "_ts");
    if clock.is_some_and(|column| column.type_oid == pg_sys::TIMESTAMPTZOID) {
        return Ok(());
    }
    let column = quote_identifier(name);
    locks::relation(relid, pg_sys::AccessShareLock);
    let found = mass_expiry::estimate(
        relid,
        [
            &format!("{column} IS NOT NULL"),
            &format!(
                "{column} OPERATOR(pg_catalog.>) 0 AND {column} OPERATOR(pg_catalog.<=) 86400"
            ),
        ],
    );
    if found.met[0] < 0.5 {
        return Ok(());
    }
    let table = qualified_name(relid);
    let seconds = asked.default_ttl.unwrap_or(-1);
    Err(Error::new(
        PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
        format!("column {column} of table {table} has values, which would become times to live of rows"),
    )
    .detail(format!(
        "{} of {:.0} rows would have a time to live of their own, {:.0} of them a day or less.",
        found.shown(found.met[0]),
        found.total,
        found.met[1]
    ))
    .hint(format!(
        "If the values are seconds that a row lives, run: SELECT ttl.enable({0}, {seconds}, ttl_column => {1}); otherwise: SELECT ttl.enable({0}, {seconds}, ttl_column => NULL);",
        shown(relid),
        quote_literal(name)
    )))
}

/// W1: a column that each INSERT and UPDATE overwrites from now on.
fn clock(relid: pg_sys::Oid, asked: &Asked, consent: &Consent) -> Result<Option<Error>> {
    let name = asked.ts_column.as_deref().unwrap_or("_ts");
    let is_clock = |column: &catalog::Attribute| {
        column.type_oid == pg_sys::TIMESTAMPTZOID && !column.generated
    };
    if catalog::attribute(relid, name).filter(is_clock).is_none() || is_stamped(relid, name)? {
        return Ok(None);
    }
    let (table, column) = (qualified_name(relid), quote_identifier(name));
    let seconds = asked.default_ttl.filter(|&seconds| seconds > 0);
    let expired = |ahead: i64| {
        seconds.map_or("false".to_owned(), |seconds| {
            format!(
                "{column} OPERATOR(pg_catalog.<=) (ttl.now() OPERATOR(pg_catalog.+) '{} seconds'::pg_catalog.interval)",
                ahead - i64::from(seconds)
            )
        })
    };
    locks::relation(relid, pg_sys::AccessShareLock);
    let has_value = format!("{column} IS NOT NULL");
    let filled = mass_expiry::estimate(relid, [&has_value, &expired(0)]);
    if filled.met[0] < 0.5 {
        return Ok(None);
    }
    let soon = mass_expiry::estimate(relid, [&expired(86_400), "false"]);
    let counts = match seconds {
        Some(seconds) => format!(
            "With {seconds} seconds, {} of {:.0} rows expire at once, and {:.0} within a day.",
            filled.shown(filled.met[1]),
            filled.total,
            soon.met[0]
        ),
        None => "No row expires without a default.".to_owned(),
    };
    let instead = format!(
        "SELECT ttl.expire_after({}, {}, {});",
        shown(relid),
        quote_literal(name),
        seconds.unwrap_or(86_400)
    );
    if is_creation_time(name) && !consent.confirmed {
        return Err(Error::new(
            PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
            format!("column {column} of table {table} would be overwritten by every INSERT and UPDATE"),
        )
        .detail(format!(
            "ttl.enable() keeps the time of the last modification of a row in it. {counts}"
        ))
        .hint(format!(
            "To let rows expire after the time in the column, run: {instead} To let the column be overwritten, run: {}",
            consent.call
        )));
    }
    Ok(Some(
        Error::for_notice(format!(
            "column {column} of table {table} is overwritten from now on by every INSERT and UPDATE"
        ))
        .detail(format!(
            "It has the time of the last modification of a row. {counts}"
        ))
        .hint(format!(
            "To let rows expire after the time in the column, which stays as it is, run instead: {instead}"
        )),
    ))
}

/// Whether the column is stamped by a DEFAULT of the extension's: it was made for that.
fn is_stamped(relid: pg_sys::Oid, name: &str) -> Result<bool> {
    let query = format!(
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_attrdef AS d JOIN pg_catalog.pg_attribute AS a \
           ON a.attrelid OPERATOR(pg_catalog.=) d.adrelid AND a.attnum OPERATOR(pg_catalog.=) d.adnum \
          WHERE d.adrelid OPERATOR(pg_catalog.=) {}::pg_catalog.oid AND a.attname OPERATOR(pg_catalog.=) {} \
            AND pg_catalog.pg_get_expr(d.adbin, d.adrelid) OPERATOR(pg_catalog.=) ANY (ARRAY['ttl.current_ts()', 'current_ts()']))",
        relid.to_u32(),
        quote_literal(name)
    );
    Ok(encoding::first_bool(&query)?.unwrap_or(false))
}

//! What the time in a column is, for `ttl.expire_after` and its preview (M15): the column itself, or the instant that its number
//! means.

use super::guard;
use super::mass_expiry::shown;
use crate::error::{Error, Result};
use crate::pg::abi::encoding;
use crate::pg::abi::values::Text;
use crate::pg::catalog::{
    self, Attribute, index, names, qualified_name, quote_identifier, quote_literal,
};
use crate::policy::{EpochUnit, IndexRule};
use crate::store::dates::{DateKind, DateType};
use pgrx::{PgSqlErrorCode, pg_sys};
use std::ffi::CStr;

/// The arguments that say what the time is.
pub(super) struct TimeSource {
    pub(super) column: Option<String>,
    /// Seconds.
    pub(super) after: i32,
    pub(super) unit: Option<String>,
    pub(super) time_zone: Option<String>,
    /// They are those of `ttl.preview`.
    pub(super) previews: bool,
}

/// What the index is on.
pub(super) struct IndexedTime {
    /// As SQL.
    pub(super) expression: String,
    /// The column's number, if it is the column itself.
    pub(super) column: Option<i16>,
    pub(super) date: DateKind,
}

impl TimeSource {
    pub(super) fn of(
        column: Option<&CStr>,
        after: Option<i32>,
        unit: Option<Text>,
        time_zone: Option<Text>,
    ) -> Result<Self> {
        Ok(Self {
            column: column.map(encoding::from_server),
            after: checked_seconds(guard::required(after, "after")?, "after")?,
            unit: unit.map(|unit| unit.0),
            time_zone: time_zone.map(|zone| zone.0),
            previews: false,
        })
    }

    /// The call so far, without the closing bracket.
    pub(super) fn call(&self, relid: pg_sys::Oid) -> String {
        let function = if self.previews {
            "preview"
        } else {
            "expire_after"
        };
        let column = quote_literal(self.column.as_deref().unwrap_or_default());
        let (table, after) = (shown(relid), self.after);
        let mut call = format!("ttl.{function}({table}, {column}, {after}");
        for (name, value) in [("unit", &self.unit), ("time_zone", &self.time_zone)] {
            if let Some(value) = value {
                call += &format!(", {name} => {}", quote_literal(value));
            }
        }
        call
    }

    pub(super) fn key(&self, relid: pg_sys::Oid) -> Result<IndexedTime> {
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
            return Err(not_a_time(relid, name, &column, self.after));
        }
        let unit = self.unit.as_deref().ok_or_else(|| {
            let call = match self.previews {
                true => format!("* FROM {}", self.call(relid)),
                false => self.call(relid),
            };
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

fn no_column(relid: pg_sys::Oid, name: &str) -> Error {
    Error::new(
        PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
        format!(
            "column {} of table {} does not exist",
            quote_identifier(name),
            qualified_name(relid)
        ),
    )
    .detail("The table has no column of exactly this name.")
    .hint("Write the column's name as \\d shows it, without double quotes.")
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
    Error::invalid(message)
        .detail("\"unit\" applies only to numeric columns.")
        .hint("Leave out \"unit\".")
}

fn no_unit(name: &str, column: &Attribute, call: &str) -> Error {
    let message = format!(
        "argument \"unit\" must be given for {}",
        typed(name, column)
    );
    Error::invalid(message)
        .detail("Its numbers may be seconds, milliseconds or microseconds since 1970.")
        .hint(format!(
            "For seconds, run: SELECT {call}, unit => 'seconds');"
        ))
}

fn unknown_unit(unit: &str) -> Error {
    let message = format!("unrecognized value for argument \"unit\": \"{unit}\"");
    Error::invalid(message).hint("Available values: seconds, milliseconds, microseconds.")
}

/// 42804, with the way that there is.
fn not_a_time(relid: pg_sys::Oid, name: &str, column: &Attribute, seconds: i32) -> Error {
    let message = format!("cannot read a time from {}", typed(name, column));
    Error::new(PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH, message)
        .detail("Supported types: timestamptz, timestamp, date; with \"unit\" also integer, bigint, numeric, double precision.")
        .hint(way(relid, name, column.type_oid, &seconds.to_string()))
}

/// What to type for a column of a type that has no time. `after` is the time to live, in SQL.
pub(in crate::api) fn way(
    relid: pg_sys::Oid,
    name: &str,
    type_oid: pg_sys::Oid,
    after: &str,
) -> String {
    let (table, column) = (qualified_name(relid), quote_identifier(name));
    match type_oid {
        type_oid if is_number(type_oid) => format!(
            "If it counts seconds since 1970, run: SELECT ttl.expire_after({}, {}, {after}, unit => 'seconds'); or with unit => 'milliseconds'.",
            quote_literal(&table),
            quote_literal(name)
        ),
        type_oid => match instant_of(type_oid, &column) {
            Some((when, expression)) => {
                let index = catalog::free_relation_name(relid, &format!("{name}_expiry"));
                let shown = quote_literal(&index::qualified_name(relid, &index));
                format!(
                    "{when}, run: CREATE INDEX {} ON {table} ({expression}); SELECT ttl.expire_index({shown}, {after});",
                    quote_identifier(&index)
                )
            }
            None => "Create an index on an expression that returns timestamptz, and pass it to ttl.expire_index()."
                .to_owned(),
        },
    }
}

/// The expression that makes an instant of a column of this type, if one is known, and of which values it does.
fn instant_of(type_oid: pg_sys::Oid, column: &str) -> Option<(&'static str, String)> {
    let base = names::base_type(type_oid);
    match base {
        pg_sys::TEXTOID | pg_sys::VARCHAROID => Some((
            "For text in ISO 8601",
            format!("ttl.from_iso8601({column})"),
        )),
        pg_sys::TSTZRANGEOID | pg_sys::TSRANGEOID | pg_sys::DATERANGEOID => Some((
            "To let rows expire after the end of the range",
            format!("pg_catalog.upper({column})"),
        )),
        _ if base != type_oid && DateType::of(base).is_some_and(|date| !date.is_array) => Some((
            "To let rows expire after the time in the column",
            format!("({column}::{})", names::of_type(base)),
        )),
        _ if DateType::of(base).is_some_and(|date| date.is_array) => Some((
            "To let rows expire after the earliest time in the array",
            format!("ttl.earliest({column})"),
        )),
        _ => None,
    }
}

pub(in crate::api) fn checked_seconds(value: i32, argument: &str) -> Result<i32> {
    IndexRule::check_seconds(i64::from(value)).ok_or_else(|| {
        let message = format!("invalid value for argument \"{argument}\": {value}");
        Error::invalid(message)
            .detail("It is a number of seconds from 0 to 2147483647.")
            .hint("With 0, rows expire at the time that they name.")
    })
}

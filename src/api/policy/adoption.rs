//! Columns that a table has already and that get a meaning with its time to live: nothing of that is
//! silent.

use super::enable_arguments::Asked;
use super::mass_expiry::{self, Consent, shown};
use super::{guard, time_source};
use crate::error::{Error, Result};
use crate::pg::abi::encoding;
use crate::pg::catalog::{
    self, constraints, index, names, qualified_name, quote_identifier, quote_literal,
};
use crate::pg::session::locks;
use crate::policy::{is_creation_time, is_end, is_event};
use crate::store::dates::DateType;
use crate::store::{extension, stored_calls};
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
    if let Some(name) = &asked.ts_column
        && catalog::attribute(relid, name).is_none()
        && !SYSTEM_COLUMNS.contains(&name.as_str())
    {
        return Err(no_such_column(relid, name));
    }
    let ts = asked.ts_column.as_deref().unwrap_or("_ts");
    if let Some(column) = catalog::attribute(relid, ts) {
        if column.type_oid != pg_sys::TIMESTAMPTZOID || column.generated {
            return Err(of_another_kind(relid, ts, &column, asked));
        }
        if index::is_key(relid, column.attno) {
            return Err(is_key(relid, ts, asked));
        }
    }
    brought_by_child(relid, ts, "times of their last modification", consent)?;
    if asked.document_column.clone().flatten().is_none() {
        let name = asked.ttl_column.clone().unwrap_or(Some("ttl".to_owned()));
        if let Some(name) = name {
            brought_by_child(relid, &name, "times to live of rows", consent)?;
            overrides(relid, &name, asked, consent)?;
        }
    }
    clock(relid, asked, consent)
}

/// W2: a column that the table gets and a table that inherits from it has: PostgreSQL makes one of them, with the values that are
/// there. `meaning`: what they would become.
fn brought_by_child(
    relid: pg_sys::Oid,
    name: &str,
    meaning: &str,
    consent: &Consent,
) -> Result<()> {
    if catalog::attribute(relid, name).is_some() || consent.confirmed {
        return Ok(());
    }
    // What an earlier time to live of the child has left was made for that.
    let was_made = |child| {
        let ts = catalog::attribute(child, "_ts");
        ts.is_some_and(|column| stored_calls::is_current_ts(child, column.attno))
    };
    let has_own =
        |&child: &pg_sys::Oid| catalog::attribute(child, name).is_some() && !was_made(child);
    let mut children = catalog::all_inheritors(relid).into_iter();
    let Some(child) = children.find(has_own) else {
        return Ok(());
    };
    let (table, child) = (qualified_name(relid), qualified_name(child));
    let column = quote_identifier(name);
    Err(Error::new(
        PgSqlErrorCode::ERRCODE_DUPLICATE_COLUMN,
        format!("table {child}, which inherits from table {table}, has a column {column} of its own"),
    )
    .detail(format!("It would become one with the column that {table} gets, and its values {meaning}."))
    .hint(format!(
        "Name another column in ts_column or ttl_column, or rename that one. If its values are such, {}",
        consent.how
    )))
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
    .detail("A column that is named in ts_column must exist.")
    .hint(format!(
        "To add one of that name, run before: ALTER TABLE {table} ADD COLUMN {column} pg_catalog.timestamptz NOT NULL DEFAULT ttl.current_ts();"
    ))
}

/// W6: what there is to do with such a column.
fn of_another_kind(
    relid: pg_sys::Oid,
    name: &str,
    column: &catalog::Attribute,
    asked: &Asked,
) -> Error {
    let table = qualified_name(relid);
    let wanted = names::of_type(pg_sys::TIMESTAMPTZOID);
    let (code, message) = match column.generated {
        true => (
            PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
            format!("column \"{name}\" of table {table} is a generated column"),
        ),
        false => (
            PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
            format!("column \"{name}\" of table {table} is not of type {wanted}"),
        ),
    };
    let is_date = DateType::of(column.type_oid).is_some_and(|date| !date.is_array);
    let seconds = asked.default_ttl.filter(|&seconds| seconds > 0);
    let way = match is_date {
        true => format!(
            "To let rows expire after the time in the column, which stays as it is, run: {}",
            expire_after_call(relid, name, seconds)
        ),
        false => time_source::way(
            relid,
            name,
            column.type_oid,
            &seconds.unwrap_or(86_400).to_string(),
        ),
    };
    // The column of the usual name cannot be added beside it.
    let other = match asked.ts_column {
        None => " To keep the time of the last modification, name another column in ts_column.",
        Some(_) => "",
    };
    Error::new(code, message)
        .detail(format!("ttl.enable() keeps the time of the last modification in it, which needs an ordinary column of type {wanted}."))
        .hint(way + other)
}

/// Rows that are written at the same time would be duplicates of each other.
fn is_key(relid: pg_sys::Oid, name: &str, asked: &Asked) -> Error {
    let (table, column) = (qualified_name(relid), quote_identifier(name));
    let seconds = asked.default_ttl.filter(|&seconds| seconds > 0);
    Error::new(
        PgSqlErrorCode::ERRCODE_INVALID_COLUMN_REFERENCE,
        format!("column {column} of table {table} is a unique key"),
    )
    .detail("ttl.enable() keeps the time of the last modification in it, in whole seconds: a second row in the same second would be a duplicate.")
    .hint(format!(
        "To let rows expire after the time in the column, which stays as it is, run: {} Otherwise, name another column in ts_column.",
        expire_after_call(relid, name, seconds)
    ))
}

/// W2: a column of that name that was not made for it.
fn overrides(relid: pg_sys::Oid, name: &str, asked: &Asked, consent: &Consent) -> Result<()> {
    let Some(present) = catalog::attribute(relid, name).filter(|column| !column.generated) else {
        return Ok(());
    };
    let with = |ttl_column: Option<String>| {
        let asked = Asked {
            ttl_column: Some(ttl_column),
            ..asked.clone()
        };
        format!("SELECT {});", asked.call(relid))
    };
    if present.type_oid != pg_sys::INT4OID {
        return Err(no_override(relid, name, &with(None)));
    }
    if index::is_in_key(relid, present.attno) {
        return Err(in_key(relid, name));
    }
    if is_numbered(relid, present.attno)? {
        return Err(numbered(relid, name, &with(None)));
    }
    if asked.ttl_column.is_some() || consent.confirmed {
        return Ok(());
    }
    // A table that has `_ts`, too, was made for a time to live, as by a dump of its schema.
    let clock = catalog::attribute(relid, "_ts");
    if clock.is_some_and(|column| column.type_oid == pg_sys::TIMESTAMPTZOID) {
        return Ok(());
    }
    let column = quote_identifier(name);
    locks::relation(relid, pg_sys::AccessShareLock);
    let found = mass_expiry::estimate(relid, &format!("{column} IS NOT NULL"));
    if found.met < 0.5 {
        return Ok(());
    }
    let soon = mass_expiry::estimate(
        relid,
        &format!("{column} OPERATOR(pg_catalog.>) 0 AND {column} OPERATOR(pg_catalog.<=) 86400"),
    );
    let table = qualified_name(relid);
    Err(Error::new(
        PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
        format!(
            "column {column} of table {table} has values, which would become times to live of rows"
        ),
    )
    .detail(format!(
        "{} of {:.0} rows would have a time to live of their own, {} of them a day or less.",
        found.shown(found.met),
        found.total,
        soon.shown(soon.met)
    ))
    .hint(format!(
        "If the values are seconds that a row lives, run: {} otherwise: {}",
        with(Some(name.to_owned())),
        with(None)
    )))
}

/// W6: a column of another type under the name of the override.
fn no_override(relid: pg_sys::Oid, name: &str, without: &str) -> Error {
    let table = qualified_name(relid);
    Error::new(
        PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
        format!("column \"{name}\" of table {table} is not of type integer"),
    )
    .detail("A row's own time to live, in seconds, needs a column of exactly this type.")
    .hint(format!(
        "For a table without overrides, run: {without} Otherwise, name another column in ttl_column."
    ))
}

/// The values of a key's column tell rows apart; they are no times to live.
fn in_key(relid: pg_sys::Oid, name: &str) -> Error {
    let (table, column) = (qualified_name(relid), quote_identifier(name));
    Error::new(
        PgSqlErrorCode::ERRCODE_INVALID_COLUMN_REFERENCE,
        format!("column {column} of table {table} is part of a unique key"),
    )
    .detail("Its values would become times to live of rows, in seconds.")
    .hint("Name a column in ttl_column that is not part of a key, or none, for a table without overrides: ttl_column => NULL.")
}

/// Whether the column is an identity, or its DEFAULT takes numbers from a sequence.
fn is_numbered(relid: pg_sys::Oid, attno: i16) -> Result<bool> {
    let query = format!(
        "SELECT a.attidentity OPERATOR(pg_catalog.<>) '' OR EXISTS ( \
             SELECT FROM pg_catalog.pg_attrdef AS d \
               JOIN pg_catalog.pg_depend AS p ON p.objid OPERATOR(pg_catalog.=) d.oid \
               JOIN pg_catalog.pg_class AS s ON s.oid OPERATOR(pg_catalog.=) p.refobjid \
              WHERE d.adrelid OPERATOR(pg_catalog.=) a.attrelid AND d.adnum OPERATOR(pg_catalog.=) a.attnum \
                AND p.classid OPERATOR(pg_catalog.=) {}::pg_catalog.oid \
                AND p.refclassid OPERATOR(pg_catalog.=) {}::pg_catalog.oid \
                AND s.relkind OPERATOR(pg_catalog.=) 'S') \
           FROM pg_catalog.pg_attribute AS a \
          WHERE a.attrelid OPERATOR(pg_catalog.=) {}::pg_catalog.oid AND a.attnum OPERATOR(pg_catalog.=) {attno}",
        pg_sys::AttrDefaultRelationId.to_u32(),
        pg_sys::RelationRelationId.to_u32(),
        relid.to_u32()
    );
    Ok(encoding::first_bool(&query)?.unwrap_or(false))
}

/// Each new row would have another number of seconds.
fn numbered(relid: pg_sys::Oid, name: &str, without: &str) -> Error {
    let (table, column) = (qualified_name(relid), quote_identifier(name));
    Error::new(
        PgSqlErrorCode::ERRCODE_INVALID_COLUMN_REFERENCE,
        format!("column {column} of table {table} is numbered by a sequence"),
    )
    .detail("Its values would become times to live of rows, in seconds.")
    .hint(format!(
        "For a table without overrides, run: {without} Otherwise, name another column in ttl_column."
    ))
}

/// W1: a column that each INSERT and UPDATE overwrites from now on.
fn clock(relid: pg_sys::Oid, asked: &Asked, consent: &Consent) -> Result<Option<Error>> {
    let name = asked.ts_column.as_deref().unwrap_or("_ts");
    // One that has the extension's DEFAULT was made for that.
    let is_taken_over = |column: &catalog::Attribute| {
        column.type_oid == pg_sys::TIMESTAMPTZOID
            && !column.generated
            && !stored_calls::is_current_ts(relid, column.attno)
            && !has_override_check(relid)
    };
    if !catalog::attribute(relid, name).is_some_and(|column| is_taken_over(&column)) {
        return Ok(None);
    }
    let (table, column) = (qualified_name(relid), quote_identifier(name));
    locks::relation(relid, pg_sys::AccessShareLock);
    let filled = mass_expiry::estimate(relid, &format!("{column} IS NOT NULL"));
    // No time of a modification is in the future; a clock may be a little ahead of another.
    let ahead = format!(
        "{column} OPERATOR(pg_catalog.>) (pg_catalog.statement_timestamp() OPERATOR(pg_catalog.+) '1 hour'::pg_catalog.interval)"
    );
    let is_ahead = || mass_expiry::estimate(relid, &ahead).met >= 0.5;
    let is_end = is_end(name) || asked.ts_column.is_some() && filled.met >= 0.5 && is_ahead();
    let seconds = match is_end {
        true => Some(0),
        false => asked.default_ttl.filter(|&seconds| seconds > 0),
    };
    let is_event = is_event(name);
    let is_another_time = is_end || is_event || is_creation_time(name);
    // To a row without a value, an event has not happened.
    let has_values = filled.met >= 0.5 || is_event && filled.total >= 0.5;
    if !has_values {
        // Where there are rows, the same statement is refused.
        return Ok(is_another_time.then(|| {
            overwritten(relid, name)
                .detail("It stores the time of each row's last modification. If the column had values, this would be refused.")
                .hint(format!("To let rows expire after the time in the column, {}", instead(relid, name, seconds)))
        }));
    }
    if is_another_time && !consent.confirmed {
        return Err(Error::new(
            PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
            format!("column {column} of table {table} would be overwritten by every INSERT and UPDATE"),
        )
        .detail("ttl.enable() keeps the time of the last modification of a row in it.")
        .hint(format!(
            "To let rows expire after the time in the column, run: {} To let the column be overwritten, {}",
            expire_after_call(relid, name, seconds),
            consent.how
        )));
    }
    Ok(Some(
        overwritten(relid, name)
            .detail("It stores the time of each row's last modification.")
            .hint(format!(
                "To let rows expire after the time in the column, and keep it as it is, {}{}",
                instead(relid, name, seconds),
                match has_overrides(relid, asked) {
                    true => " Times to live of single rows do not count then.",
                    false => "",
                }
            )),
    ))
}

/// Whether the table has the constraint that a time to live adds to its overrides: it had one before, as by a dump.
fn has_override_check(relid: pg_sys::Oid) -> bool {
    extension::functions().is_some_and(|ttl| {
        let all = constraints::of(relid);
        all.iter().any(|it| it.calls(ttl.is_override))
    })
}

/// Whether the table has a column for overrides already.
fn has_overrides(relid: pg_sys::Oid, asked: &Asked) -> bool {
    let name = asked.ttl_column.clone().unwrap_or(Some("ttl".to_owned()));
    name.is_some_and(|name| catalog::attribute(relid, &name).is_some())
}

fn overwritten(relid: pg_sys::Oid, name: &str) -> Error {
    Error::for_notice(format!(
        "column {} of table {} is now overwritten by every INSERT and UPDATE",
        quote_identifier(name),
        qualified_name(relid)
    ))
}

/// What undoes the adoption of the column, and lets rows expire after the time in it. Without `drop_columns` the
/// column would still be stamped (C4).
fn instead(relid: pg_sys::Oid, name: &str, seconds: Option<i32>) -> String {
    format!(
        "run: SELECT ttl.disable({}, drop_columns => true, revive_expired => true); {}",
        shown(relid),
        expire_after_call(relid, name, seconds)
    )
}

fn expire_after_call(relid: pg_sys::Oid, name: &str, seconds: Option<i32>) -> String {
    format!(
        "SELECT ttl.expire_after({}, {}, {});",
        shown(relid),
        quote_literal(name),
        seconds.unwrap_or(86_400)
    )
}

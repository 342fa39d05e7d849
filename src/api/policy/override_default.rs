//! The DEFAULT of an override column: each INSERT that does not name the column takes it (W7).

use crate::error::{Error, Result};
use crate::pg::abi::values;
use crate::pg::catalog::{self, qualified_name, quote_identifier, quote_literal};
use crate::pg::session;
use crate::policy::Policy;
use pgrx::pg_sys;

/// Refuses a constant that is no time to live. Returns what is to be said of one that is.
pub(in crate::api) fn check(relid: pg_sys::Oid, policy: &Policy) -> Result<Option<Error>> {
    let column = policy.ttl_column.as_deref();
    let Some(name) = column.filter(|_| policy.document_column.is_none()) else {
        return Ok(None);
    };
    let plain = catalog::attribute(relid, name).filter(|column| {
        column.type_oid == pg_sys::INT4OID && column.has_default && !column.generated
    });
    let Some(default) = plain.and(shown(relid, name)?) else {
        return Ok(None);
    };
    let (table, column) = (qualified_name(relid), quote_identifier(name));
    let drop = format!("ALTER TABLE {table} ALTER COLUMN {column} DROP DEFAULT;");
    let told = |value: &str, lives: &str| {
        let message = format!("column {column} of table {table} has the default {value}");
        Error::for_notice(message)
            .detail(format!(
                "A row that is inserted without a value for it {lives}."
            ))
            .hint(format!(
                "To let such rows follow the table's default, run: {drop}"
            ))
    };
    let seconds = match constant(&default) {
        None if default == "NULL::integer" => return Ok(None),
        None => {
            let lives = "lives that number of seconds, whatever the table's default is";
            return Ok(Some(told(&default, lives)));
        }
        Some(-1) => return Ok(Some(told("-1", "never expires"))),
        Some(seconds) if seconds > 0 => {
            let lives = format!("lives {seconds} seconds, whatever the table's default is");
            return Ok(Some(told(&seconds.to_string(), &lives)));
        }
        Some(seconds) => seconds,
    };
    let message = format!(
        "column {column} of table {table} has the default {seconds}, which is no time to live"
    );
    Err(
        Error::invalid(message)
            .detail("A time to live is a positive number of seconds, -1 for ever, or NULL for the table's default. An INSERT without a value for the column would fail.")
            .hint(format!(
                "Run: ALTER TABLE {table} ALTER COLUMN {column} DROP NOT NULL, ALTER COLUMN {column} DROP DEFAULT; UPDATE {table} SET {column} = NULL WHERE {column} = {seconds}; then repeat the call."
            )),
    )
}

/// The DEFAULT, as PostgreSQL shows it.
fn shown(relid: pg_sys::Oid, name: &str) -> Result<Option<String>> {
    let query = format!(
        "SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid) \
           FROM pg_catalog.pg_attrdef AS d JOIN pg_catalog.pg_attribute AS a \
             ON a.attrelid OPERATOR(pg_catalog.=) d.adrelid AND a.attnum OPERATOR(pg_catalog.=) d.adnum \
          WHERE d.adrelid OPERATOR(pg_catalog.=) {}::pg_catalog.oid AND a.attname OPERATOR(pg_catalog.=) {}",
        relid.to_u32(),
        quote_literal(name)
    );
    let found = session::with_safe_search_path(|| values::texts::<1>(&query))?;
    Ok(found.into_iter().next().map(|[text]| text))
}

/// The number that the DEFAULT is, if it is one.
fn constant(shown: &str) -> Option<i64> {
    // PostgreSQL shows a negative number as '-1'::integer, or (-1).
    let number = shown.trim_end_matches("::integer");
    let number = number.trim_matches(|c: char| "()'".contains(c));
    number.parse().ok()
}

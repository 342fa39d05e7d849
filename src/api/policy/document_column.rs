//! Overrides in documents on a table that had none there before: `document_column` given later (D1).

use super::{cluster, live_view};
use crate::error::{Error, Result};
use crate::pg::catalog::{self, constraints, qualified_name, quote_identifier, quote_literal};
use crate::pg::session::txn;
use crate::policy::Policy;
use pgrx::{PgSqlErrorCode, pg_sys};

/// Whether the override column, which `ttl.enable` added, is to be generated from documents from
/// now on. PostgreSQL cannot turn a column into a generated one, so that it is replaced.
pub(in crate::api) fn replaces_override(present: &Policy, wanted: &Policy) -> bool {
    present.document_column.is_none()
        && wanted.document_column.is_some()
        && present
            .ttl_column
            .as_ref()
            .is_none_or(|name| present.added.has_column(name))
}

/// Drops the override column, unless a row has an override there that its document lacks. Its
/// indexes and constraints go with it. The caller holds ACCESS EXCLUSIVE, and has removed the label.
pub(in crate::api) fn drop_override(relid: pg_sys::Oid, ttl: &str, document: &str) -> Result<()> {
    let Some(column) = catalog::attribute(relid, ttl) else {
        return Ok(());
    };
    let table = qualified_name(relid);
    let (name, ttl, document) = (ttl, quote_identifier(ttl), quote_identifier(document));
    // A constraint, not a query: it is checked for every row on disk, whatever a policy for rows
    // hides from the owner. A constraint that is NULL passes. It goes with the column.
    let check = format!(
        "ALTER TABLE {table} ADD CHECK ({ttl} IS NULL OR COALESCE({ttl} OPERATOR(pg_catalog.=) ttl.document_ttl({document}), false))"
    );
    let before = constraints::of(relid).len();
    let is_checked = || constraints::of(relid).len() > before;
    match txn::nested(|| cluster::alter_itself(relid, &check, is_checked)) {
        Err(error) if error.code == PgSqlErrorCode::ERRCODE_CHECK_VIOLATION => {
            return Err(overrides_in_column(&table, &ttl, &document));
        }
        result => result?,
    }
    live_view::refuse_readers(relid, &[column.attno])?;
    let drop = format!("ALTER TABLE {table} DROP COLUMN {ttl}");
    cluster::alter_itself(relid, &drop, || catalog::attribute(relid, name).is_none())
}

fn overrides_in_column(table: &str, ttl: &str, document: &str) -> Error {
    let message = format!("column {ttl} of table {table} has overrides that the documents lack");
    Error::not_ready(message)
    .detail("The column is to be generated from the documents, and these overrides would be lost.")
    .hint(format!(
        "To write them into the documents and keep the age of each row, first run: BEGIN; SET LOCAL ttl.preserve_ts = on; UPDATE {table} SET {document} = {document} || pg_catalog.jsonb_build_object('ttl', {ttl}) WHERE {ttl} IS NOT NULL; COMMIT;"
    ))
}

/// Tells that properties `ttl` do not count, where a command of MongoDB's sets the default of a
/// table that has documents: in Cosmos DB they do (D1).
pub(in crate::api) fn tell_if_ignored(relid: pg_sys::Oid, policy: &Policy) {
    if policy.document_column.is_some() {
        return;
    }
    let is_jsonb = |name: &String| {
        catalog::attribute(relid, name).is_some_and(|column| column.type_oid == pg_sys::JSONBOID)
    };
    let Some(document) = catalog::copied_columns(relid).find(is_jsonb) else {
        return;
    };
    let table = qualified_name(relid);
    let (column, seconds) = (
        quote_identifier(&document),
        policy.default_ttl.unwrap_or(-1),
    );
    Error::for_notice(format!(
        "a property \"ttl\" in column {column} of table {table} is ignored"
    ))
    .hint(format!(
        "To use it as the override of its row, run: SELECT ttl.enable({}, {seconds}, document_column => {});",
        quote_literal(&table),
        quote_literal(&document)
    ))
    .notice();
}

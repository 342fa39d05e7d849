//! The columns that a policy needs: which the table lacks, and which conflict with it.

use crate::citus;
use crate::error::{Error, Result};
use crate::pg::abi::encoding;
use crate::pg::catalog::{self, qualified_name, quote_identifier};
use crate::policy::{Added, IndexMethod, Policy};
use crate::store::stored_calls::is_generated_from;
use crate::store::{label_provider, override_check};
use pgrx::pg_sys;

/// What a table lacks.
pub(in crate::api) struct Missing {
    /// The statements that add it.
    pub(in crate::api) statements: Vec<String>,
    /// Whether the override column, which was added, is dropped before, to be generated from
    /// documents then.
    pub(in crate::api) replaces_override: bool,
    /// All that `ttl.enable` has added once they have run, including earlier calls.
    pub(in crate::api) added: Added,
}

/// The statements that add what is missing. They rewrite the table only for the generated column of
/// a document. Existing rows count from now.
pub(in crate::api) fn missing_columns(relid: pg_sys::Oid, policy: &Policy) -> Result<Missing> {
    let table = qualified_name(relid);
    let mut statements = Vec::new();
    let mut added = policy.added.clone();
    let mut replaces_override = false;
    if let Some(name) = &policy.document_column {
        label_provider::check_document_column(relid, name)?;
    }
    let ts_column = policy.ts_column.as_deref().unwrap_or_default();
    let ts = quote_identifier(ts_column);
    match catalog::attribute(relid, ts_column) {
        None => {
            added.note_column(ts_column);
            statements.push(format!(
                "ALTER TABLE {table} ADD COLUMN {ts} pg_catalog.timestamptz NOT NULL DEFAULT ttl.current_ts()"
            ));
            statements.push(comment(&table, &ts, TS_COMMENT));
        }
        Some(column) if column.generated => return Err(generated(ts_column, &table)),
        Some(column) if column.type_oid == pg_sys::TIMESTAMPTZOID && !column.has_default => {
            added.ts_default = true;
            statements.push(format!(
                "ALTER TABLE {table} ALTER COLUMN {ts} SET DEFAULT ttl.current_ts()"
            ));
        }
        Some(_) => {}
    }
    if let Some(name) = &policy.ttl_column {
        let ttl = quote_identifier(name);
        // A new column holds only NULLs: NOT VALID saves reading the table, unless an index is
        // built, which reads it anyway.
        let unchecked = if policy.index == IndexMethod::None || policy.build_pending {
            " NOT VALID"
        } else {
            ""
        };
        let condition = override_check::condition(&ttl);
        // Citus reads the condition of a constraint without a name twice, and fails with this one.
        let constraint = if citus::is_shell(relid) {
            "CONSTRAINT ttl_is_override CHECK"
        } else {
            "CHECK"
        };
        let check = format!("ALTER TABLE {table} ADD {constraint} ({condition})");
        match (catalog::attribute(relid, name), &policy.document_column) {
            (None, None) => {
                added.note_column(name);
                statements.push(format!("ALTER TABLE {table} ADD COLUMN {ttl} integer"));
                statements.push(comment(&table, &ttl, TTL_COMMENT));
                statements.push(format!("{check}{unchecked}"));
            }
            (None, Some(document)) => {
                added.note_column(name);
                statements.push(generated_override(&table, &ttl, document));
                statements.push(comment(&table, &ttl, TTL_COMMENT));
            }
            (Some(column), Some(document)) if !column.generated && added.has_column(name) => {
                replaces_override = true;
                statements.push(generated_override(&table, &ttl, document));
                statements.push(comment(&table, &ttl, TTL_COMMENT));
            }
            (Some(column), None) if column.generated => return Err(generated(name, &table)),
            (Some(column), Some(document))
                if !column.generated
                    || column.type_oid == pg_sys::INT4OID
                        && !is_generated_from(relid, column.attno, document) =>
            {
                return Err(not_generated(name, &table));
            }
            (Some(column), None)
                if column.type_oid == pg_sys::INT4OID && !has_check(relid, &ttl)? =>
            {
                added.ttl_check = true;
                // C21: the table is not read in the caller's transaction.
                let unchecked = if policy.build_pending {
                    " NOT VALID"
                } else {
                    ""
                };
                statements.push(format!("{check}{unchecked}"));
            }
            (Some(_), _) => {}
        }
    }
    Ok(Missing {
        statements,
        replaces_override,
        added,
    })
}

/// What `\d+` says of the columns that are added.
const TS_COMMENT: &str =
    "time of the row's last modification; its time to live starts here (ttl_ext)";
const TTL_COMMENT: &str =
    "time to live of the row in seconds; NULL for the default of the table; -1 for never (ttl_ext)";

/// The statement that describes a column.
fn comment(table: &str, column: &str, text: &str) -> String {
    let text = catalog::quote_literal(text);
    format!("COMMENT ON COLUMN {table}.{column} IS {text}")
}

/// The statement that adds an override generated from documents (D1).
fn generated_override(table: &str, ttl: &str, document: &str) -> String {
    let document = quote_identifier(document);
    format!(
        "ALTER TABLE {table} ADD COLUMN {ttl} integer GENERATED ALWAYS AS (ttl.document_ttl({document})) STORED"
    )
}

/// Whether the constraint of C3 is there already, in one of the forms in which it may be written.
fn has_check(relid: pg_sys::Oid, ttl: &str) -> Result<bool> {
    let forms = [
        override_check::shown(ttl),
        format!("ttl.is_override({ttl})"),
        format!("(({ttl} > 0) OR ({ttl} = '-1'::integer))"),
    ];
    let query = format!(
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_constraint \
          WHERE conrelid OPERATOR(pg_catalog.=) {} AND contype OPERATOR(pg_catalog.=) 'c' \
            AND pg_catalog.pg_get_expr(conbin, conrelid) OPERATOR(pg_catalog.=) ANY (ARRAY[{}]))",
        relid.to_u32(),
        forms.map(|form| catalog::quote_literal(&form)).join(", ")
    );
    Ok(encoding::first_bool(&query)?.unwrap_or(false))
}

fn generated(column: &str, table: &str) -> Error {
    let message = format!("column \"{column}\" of table {table} is a generated column");
    Error::wrong_kind(message)
        .detail("Its values cannot be set, and it is not generated from a document that the call names.")
        .hint("Name another column, or give document_column for an override that is generated from a document.")
}

fn not_generated(column: &str, table: &str) -> Error {
    let message =
        format!("column \"{column}\" of table {table} exists and is not generated from a document");
    Error::wrong_kind(message).hint(
        "Name another ttl_column: it will be added as a generated column, and this one is left alone.",
    )
}

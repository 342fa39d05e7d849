//! Removes from a table what `ttl.enable` added, and nothing else.

use super::{cluster, indexes};
use crate::error::{Error, Result};
use crate::pg::abi::values;
use crate::pg::catalog::{self, constraints, qualified_name, quote_identifier, quote_literal};
use crate::policy::Policy;
use crate::store::{override_check, stored_calls};
use pgrx::pg_sys;

/// Removes what the label says was added, and with `adopted_too` the adopted columns. The label is
/// already removed.
pub(in crate::api) fn remove(relid: pg_sys::Oid, policy: &Policy, adopted_too: bool) -> Result<()> {
    let table = qualified_name(relid);
    let added = &policy.added;
    drop_indexes(relid, policy)?;
    let mut kept = Vec::new();
    // The generated column first, as it depends on the document column. Dropping a column drops its
    // indexes and constraints.
    for column in policy.ttl_column.iter().chain(&policy.ts_column) {
        let name = quote_identifier(column);
        if adopted_too || added.has_column(column) {
            let drop = format!("ALTER TABLE {table} DROP COLUMN IF EXISTS {name}");
            cluster::alter_itself(relid, &drop, || catalog::attribute(relid, column).is_none())?;
            continue;
        }
        if catalog::attribute(relid, column).is_none() {
            continue;
        }
        kept.push(name);
        if Some(column) == policy.ts_column.as_ref() && added.ts_default {
            drop_default(relid, column)?;
        }
        if Some(column) == policy.ttl_column.as_ref() && added.ttl_check {
            drop_check(relid, column)?;
        }
    }
    if !kept.is_empty() {
        kept.reverse();
        tell_of_kept(&table, &kept);
    }
    Ok(())
}

/// Drops the indexes that were built for deletion.
fn drop_indexes(relid: pg_sys::Oid, policy: &Policy) -> Result<()> {
    for built in indexes::built(relid, policy) {
        let drop = format!("DROP INDEX {}", qualified_name(built));
        cluster::alter_itself(relid, &drop, || catalog::class(built).is_none())?;
    }
    Ok(())
}

/// Drops the DEFAULT of an adopted column, also in partitions and children, if it is still
/// `ttl.current_ts()`.
fn drop_default(relid: pg_sys::Oid, column: &str) -> Result<()> {
    let is_current_ts = |table: &pg_sys::Oid| {
        catalog::attribute(*table, column)
            .is_some_and(|column| stored_calls::is_current_ts(*table, column.attno))
    };
    let tables = catalog::all_inheritors(relid).into_iter();
    for table in tables.filter(|table| is_current_ts(table)) {
        let drop = format!(
            "ALTER TABLE ONLY {} ALTER COLUMN {} DROP DEFAULT",
            qualified_name(table),
            quote_identifier(column)
        );
        cluster::alter_itself(table, &drop, || !is_current_ts(&table))?;
    }
    Ok(())
}

/// Drops the constraint that was added to an adopted column. It is found by its text: it may have
/// been renamed.
fn drop_check(relid: pg_sys::Oid, column: &str) -> Result<()> {
    let query = format!(
        "SELECT conname::pg_catalog.text FROM pg_catalog.pg_constraint \
         WHERE conrelid OPERATOR(pg_catalog.=) {}::pg_catalog.oid AND contype OPERATOR(pg_catalog.=) 'c' \
           AND pg_catalog.pg_get_expr(conbin, conrelid) OPERATOR(pg_catalog.=) {} \
           AND coninhcount OPERATOR(pg_catalog.=) 0 ORDER BY oid LIMIT 1",
        relid.to_u32(),
        quote_literal(&override_check::shown(&quote_identifier(column)))
    );
    for [name] in values::texts(&query)? {
        let drop = format!(
            "ALTER TABLE {} DROP CONSTRAINT {}",
            qualified_name(relid),
            quote_identifier(&name)
        );
        cluster::alter_itself(relid, &drop, || {
            let left = constraints::of(relid);
            !left.iter().any(|constraint| constraint.name == name)
        })?;
    }
    Ok(())
}

fn tell_of_kept(table: &str, columns: &[String]) {
    Error::for_notice(format!(
        "table {table} keeps columns: {}",
        columns.join(", ")
    ))
    .detail("The policy does not say that ttl.enable() added them.")
    .notice();
}

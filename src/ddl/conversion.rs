//! Functions of Citus that make a table of its own of a table, or the other way: they refuse triggers,
//! and shards come without. The trigger for keys goes before, and comes where it belongs after.

use crate::citus;
use crate::error::{Error, Result};
use crate::keys::trigger_placement;
use crate::pg::catalog::{self, names, roles};
use crate::pg::exec::executor::Plan;
use crate::pg::session::{locks, xact};
use crate::store::{label_of, labels, seclabel};
use pgrx::{PgSqlErrorCode, pg_sys};
use std::cell::RefCell;

thread_local! {
    /// Schema and name of the tables that are being converted: their OIDs may change.
    static CONVERTED: RefCell<Vec<(pg_sys::Oid, String)>> = const { RefCell::new(Vec::new()) };
}

/// Before the functions that a statement calls.
pub(crate) fn before(plan: Plan<'_>) -> Result<()> {
    CONVERTED.take();
    for (function, argument) in plan.functions_called() {
        let tables = match argument {
            Some(schema) if citus::session::takes_schema(function) => tables_in(schema),
            argument => argument.into_iter().collect(),
        };
        for relid in tables.into_iter().filter(|&relid| concerns(relid)) {
            if citus::session::changes_method(function) {
                return Err(changes_method(relid));
            }
            make_ready(relid, citus::session::commits_within(function))?;
        }
    }
    Ok(())
}

/// The tables of a schema that have a label.
fn tables_in(schema: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let is_there = |relid| catalog::class(relid).is_some_and(|class| class.namespace == schema);
    let labelled = labels().into_iter().map(|(relid, _)| relid);
    labelled.filter(|&relid| is_there(relid)).collect()
}

fn make_ready(relid: pg_sys::Oid, commits_within: bool) -> Result<()> {
    if trigger_placement::has(relid) {
        if commits_within {
            return Err(is_concurrent(relid));
        }
        locks::relation(relid, pg_sys::AccessExclusiveLock);
        trigger_placement::remove_own_of_tree(relid);
        xact::next_command();
    }
    if let Some(class) = catalog::class(relid) {
        let table = (class.namespace, catalog::relation_name(relid));
        CONVERTED.with_borrow_mut(|all| all.push(table));
    }
    Ok(())
}

/// Whether the table has a label, and is one that the caller may convert; Citus says so if not.
fn concerns(relid: pg_sys::Oid) -> bool {
    catalog::class(relid).is_some()
        && roles::owns_relation(relid, roles::current_user())
        && label_of(relid).is_some()
}

/// After them: on a table of Citus the label is set again, by which all nodes put the trigger on their
/// shards.
pub(crate) fn after() {
    let converted = CONVERTED.take();
    if !converted.is_empty() {
        xact::next_command();
        xact::with_snapshot(|| {
            converted.iter().for_each(complete);
            others();
        });
    }
}

/// Tables that went with these, by foreign keys: those that are ordinary ones now get their trigger
/// again.
fn others() {
    let user = roles::current_user();
    for (relid, policy) in labels() {
        if policy.is_on()
            && !citus::is_shell(relid)
            && catalog::class(relid).is_some()
            && roles::owns_relation(relid, user)
        {
            trigger_placement::sync(relid);
        }
    }
}

fn complete((schema, name): &(pg_sys::Oid, String)) {
    let Some(relid) = names::relation(*schema, name) else {
        return;
    };
    if let Some(policy) = label_of(relid).filter(|_| citus::is_shell(relid)) {
        seclabel::set(relid, Some(&policy));
    }
    trigger_placement::sync(relid);
}

fn changes_method(relid: pg_sys::Oid) -> Error {
    let table = catalog::qualified_name(relid);
    Error::new(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        format!("cannot change the access method of table {table}, which has a time to live"),
    )
    .detail("Rows of a columnar table cannot be deleted one by one.")
    .hint(format!(
        "Remove its time to live before: SELECT ttl.disable({}, drop_columns => true).",
        catalog::quote_literal(&table)
    ))
}

fn is_concurrent(relid: pg_sys::Oid) -> Error {
    let table = catalog::qualified_name(relid);
    Error::new(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        format!("table {table} has a time to live and cannot be distributed concurrently"),
    )
    .detail("Citus would copy the trigger that frees the keys of expired rows.")
    .hint(format!("Use create_distributed_table(), or turn TTL on afterwards: SELECT ttl.disable({}, revive_expired => true) before.", catalog::quote_literal(&table)))
}

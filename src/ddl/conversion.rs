//! Functions of Citus that make a table of its own of a table, or the other way: they refuse triggers,
//! and shards come without. The trigger for keys goes before, and comes where it belongs after.

use crate::citus;
use crate::error::{Error, Result};
use crate::keys::trigger_placement;
use crate::pg::executor::Plan;
use crate::pg::{catalog, locks, names, roles, xact};
use crate::store::{label_of, seclabel};
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
        let Some(relid) = argument.filter(|&relid| concerns(relid)) else {
            continue;
        };
        if citus::session::commits_within(function) && trigger_placement::has(relid) {
            return Err(commits_within(relid));
        }
        if trigger_placement::has(relid) {
            locks::relation(relid, pg_sys::AccessExclusiveLock);
            trigger_placement::remove_own_of_tree(relid);
            xact::next_command();
        }
        if let Some(class) = catalog::class(relid) {
            let table = (class.namespace, catalog::relation_name(relid));
            CONVERTED.with_borrow_mut(|all| all.push(table));
        }
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
        xact::with_snapshot(|| converted.iter().for_each(complete));
    }
}

fn complete((schema, name): &(pg_sys::Oid, String)) {
    let Some(relid) = names::relation(*schema, name) else {
        return;
    };
    if let Some(policy) = label_of(relid).filter(|_| citus::is_shell(relid)) {
        seclabel::set(relid, Some(&policy.to_label()));
    }
    trigger_placement::sync(relid);
}

fn commits_within(relid: pg_sys::Oid) -> Error {
    let table = catalog::qualified_name(relid);
    Error::new(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        format!("table {table} has a time to live and cannot be distributed concurrently"),
    )
    .detail("Citus would copy the trigger that frees the keys of expired rows.")
    .hint(format!("Use create_distributed_table(), or turn TTL on afterwards: SELECT ttl.disable({}, revive_expired => true) before.", catalog::quote_literal(&table)))
}

//! Functions of Citus that make a table of its own of a table, or the other way: they refuse triggers,
//! and shards come without. The trigger for keys goes before, and comes where it belongs after.

use super::statement_kind::{AlterCommand, StatementKind};
use super::utility_statement::UtilityStatement;
use crate::citus;
use crate::error::{Error, Result};
use crate::keys::trigger_placement;
use crate::pg::abi::variable::Variable;
use crate::pg::catalog::{self, roles};
use crate::pg::session::{locks, xact};
use crate::store::{governing_label, label_of, labels};
use pgrx::pg_sys;
use std::cell::RefCell;

/// The tables with a label before the function, and whether each is one of Citus's.
static BEFORE: Variable<RefCell<Vec<(pg_sys::Oid, bool)>>> =
    Variable::new(RefCell::new(Vec::new()));

/// Before a function of Citus that is given this object.
pub(crate) fn before(function: pg_sys::Oid, object: Option<pg_sys::Oid>) -> Result<()> {
    let conversion = citus::conversion(function);
    let tables = match object {
        Some(schema) if conversion.of_schema => tables_in(schema),
        object => object.into_iter().collect(),
    };
    let mut left = with_labels();
    for relid in tables.into_iter().filter(|&relid| is_own(relid)) {
        if conversion.changes_method && is_kept_by_rows(relid) {
            return Err(refuse_method(relid));
        }
        if label_of(relid).is_some() {
            make_ready(relid, conversion.commits_within)?;
            // Its shards change, whatever it is now.
            left.retain(|&(table, _)| table != relid);
        }
    }
    // One of them may be among those that go along.
    if conversion.of_colocated && left.iter().any(|&(table, _)| is_own(table)) {
        citus::one_at_a_time()?;
    }
    BEFORE.replace(left);
    Ok(())
}

fn with_labels() -> Vec<(pg_sys::Oid, bool)> {
    let labels = labels().into_iter();
    labels
        .map(|(relid, _)| (relid, citus::is_shell(relid)))
        .collect()
}

/// Before ALTER TABLE … SET SCHEMA: whether [`after`] is to follow.
pub(super) fn before_set_schema(statement: &UtilityStatement<'_>) -> Result<bool> {
    let has_part = |&relid: &pg_sys::Oid| {
        is_own(relid)
            && label_of(relid).is_some()
            && (citus::is_shell(relid) || trigger_placement::has(relid))
    };
    // Citus repeats it on the other nodes.
    let is_it =
        statement.kind == StatementKind::SetSchema && citus::is_present() && !citus::is_of_citus();
    let Some(relid) = statement.relation.filter(|_| is_it).filter(has_part) else {
        return Ok(false);
    };
    make_ready(relid, false)?;
    let mut left = with_labels();
    left.retain(|&(table, _)| table != relid);
    BEFORE.replace(left);
    Ok(true)
}

/// Refuses the same by ALTER TABLE.
pub(super) fn check(statement: &UtilityStatement<'_>) -> Result<()> {
    let relid = statement
        .relation
        .filter(|_| statement.commands.contains(&AlterCommand::Columnar));
    match relid.filter(|&relid| is_own(relid) && is_kept_by_rows(relid)) {
        Some(relid) => Err(refuse_method(relid)),
        None => Ok(()),
    }
}

/// The tables of a schema that have a label.
fn tables_in(schema: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let is_there = |relid| catalog::class(relid).is_some_and(|class| class.namespace == schema);
    let labelled = labels().into_iter().map(|(relid, _)| relid);
    labelled.filter(|&relid| is_there(relid)).collect()
}

fn make_ready(relid: pg_sys::Oid, commits_within: bool) -> Result<()> {
    if !commits_within {
        citus::use_one_session(relid)?;
    }
    if trigger_placement::has(relid) {
        if commits_within {
            return Err(is_concurrent(relid));
        }
        locks::relation(relid, pg_sys::AccessExclusiveLock);
        trigger_placement::remove_own_of_tree(relid);
        xact::next_command();
    }
    Ok(())
}

/// Whether the caller may convert the table; Citus says so if not.
fn is_own(relid: pg_sys::Oid) -> bool {
    catalog::class(relid).is_some() && roles::owns_relation(relid, roles::current_user())
}

/// Whether rows of the table are deleted one by one.
fn is_kept_by_rows(relid: pg_sys::Oid) -> bool {
    governing_label(relid)
        .is_some_and(|label| label.labelled_table == relid || !label.policy.drop_partitions)
}

/// After it: the tables that it has converted, some of them by foreign keys or as they are placed together
/// with another. Shards that it has made have got their trigger in the sessions that made them.
pub(crate) fn after() {
    let before = BEFORE.take();
    xact::next_command();
    xact::with_snapshot(|| {
        for (relid, is_shell) in with_labels() {
            if !before.contains(&(relid, is_shell)) && is_own(relid) {
                trigger_placement::sync(relid);
            }
        }
    });
}

fn refuse_method(relid: pg_sys::Oid) -> Error {
    let table = catalog::qualified_name(relid);
    Error::unsupported(format!(
        "cannot change the access method of table {table}, which has a time to live"
    ))
    .detail("Rows of a columnar table cannot be deleted one by one.")
    .hint(format!(
        "Remove its time to live before: SELECT ttl.disable({}, drop_columns => true).",
        catalog::quote_literal(&table)
    ))
}

fn is_concurrent(relid: pg_sys::Oid) -> Error {
    let table = catalog::qualified_name(relid);
    Error::unsupported(format!(
        "table {table} has a time to live and cannot be distributed concurrently"
    ))
    .detail("Citus would copy the trigger that frees the keys of expired rows.")
    .hint(format!("Use create_distributed_table(), or turn TTL on afterwards: SELECT ttl.disable({}, revive_expired => true) before.", catalog::quote_literal(&table)))
}

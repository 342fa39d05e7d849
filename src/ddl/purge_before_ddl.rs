//! Statements that read or check every row must not fail because of hidden rows (C6): expired rows
//! are deleted before them, in the same transaction.
//!
//! These are `CREATE UNIQUE INDEX`, `ALTER TABLE` that adds or validates constraints or computes
//! columns anew, new partitions, and partitions that leave while rows refer to them. They read the heap without the planner's filter.

use super::purge_before_change;
use super::reads::RowsRead;
use super::statement_kind::{AlterCommand, StatementKind};
use super::utility_statement::UtilityStatement;
use crate::citus;
use crate::clock::held;
use crate::deletion::{piecemeal, purge_tables};
use crate::error::Error;
use crate::pg::catalog::{self, foreign_key, roles};
use crate::pg::server::background;
use crate::pg::session::{locks, owner_session, txn, xact};
use crate::settings;
use crate::store::{Inherited, cache, governing_label};
use pgrx::{PgSqlErrorCode, pg_sys};

/// Deletes the expired rows that the statement would read. Does nothing if the user does not own
/// the table, for whom PostgreSQL raises the error; on a table whose policy was restored, as
/// pg_restore adds constraints after the data; and for a session that sees expired rows.
pub(super) fn delete_expired(statement: &UtilityStatement<'_>) {
    if xact::is_read_only() || settings::show_expired() {
        return;
    }
    // The extension's own statements there: an index for deletion, which is not unique, and the
    // validation of the override's constraint, by which no expired row is wrong. They fire no triggers.
    if owner_session::way().is_some() {
        return;
    }
    if let (Some(relid), Some(extent)) = (statement.relation, statement.reads)
        && concerns(relid)
        && statement.take_lock(statement.lock)
        && concerns(relid)
    {
        for table in affected(relid, extent, statement) {
            delete_from(table);
        }
    }
    if statement.kind != StatementKind::AlterTable {
        return;
    }
    for command in &statement.commands {
        match *command {
            AlterCommand::Attach(Some(partition)) => before_attach(partition),
            AlterCommand::Detach(Some(partition)) => before_detach(partition, statement),
            _ => {}
        }
    }
}

/// ATTACH PARTITION checks the rows of the new partition.
fn before_attach(partition: pg_sys::Oid) {
    if !concerns(partition) {
        return;
    }
    let lock = pg_sys::AccessExclusiveLock;
    locks::relation(partition, lock);
    // The owner may have changed while the lock was waited for.
    if concerns(partition) {
        let tables = purge_tables::lock_tree(partition, lock);
        tables.into_iter().for_each(delete_from);
    }
}

/// DETACH PARTITION checks that no row refers to the partition's rows, and locks the tables that may.
fn before_detach(partition: pg_sys::Oid, statement: &UtilityStatement<'_>) {
    let referring = || {
        let of_partition = foreign_key::of_referenced(partition).into_iter();
        let keys = of_partition.filter_map(foreign_key::get);
        let tables: Vec<_> = keys.map(|key| key.referencing).collect();
        tables.into_iter().filter(|&table| may_expire(table))
    };
    let is_owner = |relid| roles::owns_relation(relid, roles::current_user());
    if referring().next().is_none()
        || !statement.relation.is_some_and(is_owner)
        || roles::reads_physically(partition)
        || !statement.take_lock(statement.lock)
    {
        return;
    }
    for table in referring() {
        // As CREATE INDEX: SHARE, which PostgreSQL takes, does not conflict with itself.
        let tables = purge_tables::lock_tree(table, pg_sys::ShareRowExclusiveLock);
        tables.into_iter().for_each(delete_from);
    }
}

/// Whether the user may run the statement, and the table can have expired rows.
fn concerns(relid: pg_sys::Oid) -> bool {
    // Citus repeats the statement for each shard, where these are.
    // A copy that it makes has only rows that another has, with the keys that they have there.
    let is_copy = citus::is_of_citus() && citus::is_unfinished_copy(relid);
    !citus::is_shell(relid)
        && !is_copy
        && roles::owns_relation(relid, roles::current_user())
        && !roles::reads_physically(relid)
        && may_expire(relid)
}

/// Whether rows of the table, its partitions or its children can expire.
fn may_expire(relid: pg_sys::Oid) -> bool {
    let hides = |table| cache::policy(table).is_some_and(|policy| policy.hides());
    catalog::all_inheritors(relid).into_iter().any(hides)
}

/// Locks the tables that the statement reads, and returns them.
fn affected(
    relid: pg_sys::Oid,
    extent: RowsRead,
    statement: &UtilityStatement<'_>,
) -> Vec<pg_sys::Oid> {
    let partitioned = catalog::is_partitioned(relid);
    if extent == RowsRead::DefaultPartition {
        let default = catalog::default_partition(relid).filter(|_| partitioned);
        return default.map_or(vec![], |default| {
            purge_tables::lock_tree(default, pg_sys::AccessExclusiveLock)
        });
    }
    if statement.recurses && (partitioned || extent == RowsRead::Children) {
        purge_tables::lock_tree(relid, statement.lock)
    } else {
        vec![relid]
    }
}

fn delete_from(relid: pg_sys::Oid) {
    let in_force = cache::policy(relid).is_some_and(|policy| policy.hides());
    let Some(Inherited { policy, .. }) = governing_label(relid).filter(|_| in_force) else {
        return;
    };
    // A partition may belong to another owner, as whom the user cannot look.
    if !roles::owns_relation(relid, roles::current_user()) {
        let reason = "the table belongs to another owner";
        could_not(relid, &Error::denied(reason));
        return;
    }
    // Look first: a DELETE that finds no row still fires statement triggers.
    if policy.restored || xact::is_trigger_pending(relid) || !purge_tables::has_expired(relid) {
        return;
    }
    let waits = policy.waits_until(background::now(), settings::change_delay());
    if policy.keep_expired > 0 || waits.is_some() {
        return left(
            relid,
            "They can still be brought back, because of \"ttl.change_delay\" or the option \"keep_expired\".",
        );
    }
    if let Some(held) = held::why() {
        return left(relid, purge_before_change::reason(held));
    }
    let deleted = txn::nested(|| {
        let kept =
            purge_tables::as_owner(relid, |visit| piecemeal::delete_what_can_go(visit, relid))
                .transpose()?
                .flatten();
        // PostgreSQL refuses such statements while trigger events are pending.
        if xact::is_trigger_pending(relid) {
            let reason = "deferred triggers would be pending";
            return Err(Error::new(PgSqlErrorCode::ERRCODE_OBJECT_IN_USE, reason));
        }
        Ok(kept)
    });
    match deleted {
        Ok(None) => {}
        Ok(Some(failure)) => could_not(relid, &failure),
        Err(failure) if failure.code == PgSqlErrorCode::ERRCODE_OBJECT_IN_USE => {
            could_not(relid, &failure);
        }
        Err(failure) => failure.raise(),
    }
}

/// C23, C24: rows that can still be brought back, and all while deletion is held, are not deleted for a statement that only
/// reads them.
fn left(relid: pg_sys::Oid, why: &str) {
    let table = catalog::qualified_name(relid);
    Error::for_notice(format!(
        "expired rows of table {table} are not deleted before this statement"
    ))
    .detail(why)
    .hint(format!(
        "If the statement fails because of a hidden expired row, run: SELECT ttl.purge({});",
        catalog::quote_literal(&table)
    ))
    .notice();
}

/// A warning, not an error, as the statement may succeed with the remaining rows. If it fails, this
/// tells which row was in its way.
fn could_not(relid: pg_sys::Oid, failure: &Error) {
    let table = catalog::qualified_name(relid);
    Error::for_warning(format!(
        "expired rows of table {table} could not be deleted before this statement"
    ))
    .detail(format!("The reason is: {}.", failure.text().trim_end_matches('.')))
    .hint(format!(
        "If the statement fails because of a hidden expired row, remove what keeps the row, then run: SELECT ttl.purge({});",
        catalog::quote_literal(&table)
    ))
    .warn();
}

//! Removes one expired row that has the key of a new row, within the user's statement.
//!
//! Unguarded, with nothing to drop: PostgreSQL's errors pass through.

pub(super) use super::with_triggers::RemovalOutcome;
use super::with_triggers::{delete_directly, outcome};
use super::{same_xact_children, with_triggers};
use crate::deletion::{archiving, left_to_owner, message, underway};
use crate::pg::abi::externs;
use crate::pg::abi::report::or_raise;
use crate::pg::catalog;
use crate::pg::exec::table::{Slot, Table};
use crate::store::cache;
use pgrx::pg_sys::{self, TM_Result};
use pgrx::prelude::*;

/// How rows of a table are deleted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deletion {
    /// No trigger and no foreign key has a part in it.
    direct: bool,
    /// A foreign key deletes or updates the rows that refer to a deleted one.
    has_actions: bool,
    /// Deleted rows go to another table (C26).
    archives: bool,
    /// Triggers of the owner's fire, or rows go to another table.
    runs_code: bool,
}

impl Deletion {
    pub(super) fn of(table: Table<'_>) -> Self {
        Self {
            direct: !table.triggers().concern_delete(),
            has_actions: same_xact_children::has_actions(table),
            archives: archives(table.oid()),
            runs_code: table.triggers().fire_own_at_delete() || archives(table.oid()),
        }
    }
}

/// Removes a row that the caller has found expired, to make room for a new one. Waits for a
/// session that has locked it, as that one may extend its life.
pub(super) fn remove(row: Slot<'_>, deletion: Deletion) -> RemovalOutcome {
    let relid = row.table().oid();
    let sets_off = deletion.runs_code || !deletion.direct;
    if sets_off && left_to_owner::is_left(relid, deletion.runs_code) {
        if row.is_own() {
            // No worker sees it.
            left_to_owner::refuse(relid);
        }
        return RemovalOutcome::Left;
    }
    row.end_command_if_own();
    // A transaction that has written nothing has no ID.
    let has_written = externs::GetTopTransactionIdIfAny() != pg_sys::InvalidTransactionId;
    if (!deletion.direct || deletion.archives)
        && let Some(other) = lock(row)
    {
        return other;
    }
    if deletion.has_actions && has_written {
        same_xact_children::refuse(row, true);
    }
    delete(row, deletion)
}

/// Locks the row for deletion and reads it again, or returns what has become of it. The DELETE
/// that follows then meets no other session, which REPEATABLE READ would not survive.
fn lock(row: Slot<'_>) -> Option<RemovalOutcome> {
    let result = row.lock(0);
    (result != Some(TM_Result::TM_Ok)).then(|| outcome(result))
}

/// Whether the table's expired rows go to another table.
pub(super) fn archives(relid: pg_sys::Oid) -> bool {
    cache::policy(relid).is_some_and(|policy| policy.label.archive_to.is_some())
}

/// The transaction has locked the row, unless nothing but the deletion itself happens.
fn delete(row: Slot<'_>, deletion: Deletion) -> RemovalOutcome {
    let table = row.table();
    table.check_replica_identity();
    announce(table.oid(), false);
    let former = underway::begin();
    // Looked up again: deletion with triggers relies on them.
    let removal = if table.triggers().concern_delete() {
        with_triggers::delete(row)
    } else {
        delete_directly(row, None)
    };
    if removal == RemovalOutcome::Gone {
        if deletion.archives {
            archive_row(row);
        }
        announce(table.oid(), true);
    }
    underway::end(former);
    removal
}

/// Inserts the deleted row, which the transaction had locked, into the archive.
#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
extern "C-unwind" fn archive_row(row: Slot<'_>) {
    if let Some(policy) = cache::policy(row.table().oid()) {
        or_raise(archiving::take_row(row, &policy));
    }
}

/// Tells consumers of logical decoding that the extension deletes.
#[pg_guard]
extern "C-unwind" fn announce(relid: pg_sys::Oid, done: bool) {
    if !message::is_wanted() {
        return;
    }
    let name = catalog::qualified_name(relid);
    if done {
        message::end(&name, 1);
    } else {
        message::begin(&name);
    }
}

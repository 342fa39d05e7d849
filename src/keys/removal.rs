//! Removes one expired row that is in the way, within the user's statement.
//!
//! Unguarded, with nothing to drop: PostgreSQL's errors pass through.

#![allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]

use super::liveness::Liveness;
use super::{same_xact_children, with_triggers};
use crate::deletion::message;
use crate::pg::{catalog, externs, relation, unguarded};
use pgrx::pg_sys::{self, TM_Result, TupleTableSlot};
use pgrx::prelude::*;

/// How rows of a table are deleted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deletion {
    relid: pg_sys::Oid,
    /// No trigger and no foreign key has a part in it.
    direct: bool,
    /// A foreign key deletes or updates the rows that refer to a deleted one.
    has_actions: bool,
}

/// The outcome.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Removal {
    /// The row is gone.
    Gone,
    /// Another session has changed or deleted it first.
    Changed,
    /// A trigger keeps it.
    Kept,
}

impl Deletion {
    /// # Safety
    /// `table` is open.
    pub(super) unsafe fn of(table: pg_sys::Relation, relid: pg_sys::Oid) -> Self {
        Self {
            relid,
            // SAFETY: as required of the caller.
            direct: unsafe { !relation::has_delete_triggers(table) },
            // SAFETY: as required of the caller.
            has_actions: unsafe { same_xact_children::has_actions(table) },
        }
    }
}

/// Removes the row in the slot, which the caller has found expired, to make room for a new one.
/// Waits for a session that has locked it, as that one may extend its life.
///
/// # Safety
/// The slot holds a row of the table, which the transaction has locked.
pub(super) unsafe fn remove(
    table: pg_sys::Relation,
    slot: *mut TupleTableSlot,
    deletion: Deletion,
) -> Removal {
    // SAFETY: as required of the caller.
    unsafe {
        // The present command may have written it, and could not delete it.
        if unguarded::TransactionIdIsCurrentTransactionId(unguarded::slot_xmin(slot)) {
            unguarded::CommandCounterIncrement();
        }
        let mut tid = (*slot).tts_tid;
        // A transaction that has written nothing has no ID.
        let has_written = externs::GetTopTransactionIdIfAny() != pg_sys::InvalidTransactionId;
        if !deletion.direct
            && let Some(other) = lock(table, slot, &mut tid, 0)
        {
            return other;
        }
        if deletion.has_actions && has_written {
            same_xact_children::refuse(table, slot, true);
        }
        delete(table, &mut tid, deletion, true)
    }
}

/// Removes the row with this TID if it is expired; if it has been updated meanwhile, its newest
/// version.
///
/// # Safety
/// The slot is for rows of the table, which the transaction has locked.
pub(super) unsafe fn remove_if_expired(
    table: pg_sys::Relation,
    slot: *mut TupleTableSlot,
    tid: &mut pg_sys::ItemPointerData,
    deletion: Deletion,
    liveness: &Liveness,
) -> Removal {
    // SAFETY: as required of the caller; once locked, the row is in the slot.
    unsafe {
        if !fetch(table, slot, tid) || liveness.is_live(slot) {
            return Removal::Kept;
        }
        let newest = pg_sys::TUPLE_LOCK_FLAG_FIND_LAST_VERSION as u8;
        if let Some(other) = lock(table, slot, tid, newest) {
            return other;
        }
        if liveness.is_live(slot) {
            return Removal::Kept;
        }
        if deletion.has_actions {
            same_xact_children::refuse(table, slot, false);
        }
        delete(table, tid, deletion, false)
    }
}

/// Reads the row version with this TID into the slot; false if there is none. The TID comes from
/// the caller; `tuple_lock` does not validate it. Until the row is locked, the slot keeps the
/// version from being pruned.
///
/// # Safety
/// The slot is for rows of the table, which the transaction has locked.
pub(super) unsafe fn fetch(
    table: pg_sys::Relation,
    slot: *mut TupleTableSlot,
    tid: &mut pg_sys::ItemPointerData,
) -> bool {
    let mut any = pg_sys::SnapshotData {
        snapshot_type: pg_sys::SnapshotType::SNAPSHOT_ANY,
        ..Default::default()
    };
    let block = u32::from(tid.ip_blkid.bi_hi) << 16 | u32::from(tid.ip_blkid.bi_lo);
    let fork = pg_sys::ForkNumber::MAIN_FORKNUM;
    // SAFETY: every table access method has this function.
    unsafe {
        let Some(fetch_version) = (*(*table).rd_tableam).tuple_fetch_row_version else {
            return false;
        };
        tid.ip_posid != 0
            && block < unguarded::RelationGetNumberOfBlocksInFork(table, fork)
            && fetch_version(table, tid, &mut any, slot)
    }
}

/// Locks the row for deletion and reads it into the slot, or returns what has become of it. The
/// DELETE that follows then meets no other session, which REPEATABLE READ would not survive.
///
/// # Safety
/// As [`fetch`].
unsafe fn lock(
    table: pg_sys::Relation,
    slot: *mut TupleTableSlot,
    tid: &mut pg_sys::ItemPointerData,
    flags: u8,
) -> Option<Removal> {
    let mut failure = pg_sys::TM_FailureData::default();
    // SAFETY: every table access method has this function.
    unsafe {
        let Some(tuple_lock) = (*(*table).rd_tableam).tuple_lock else {
            return Some(Removal::Kept);
        };
        let result = tuple_lock(
            table,
            tid,
            externs::GetActiveSnapshot(),
            slot,
            externs::GetCurrentCommandId(false),
            pg_sys::LockTupleMode::LockTupleExclusive,
            pg_sys::LockWaitPolicy::LockWaitBlock,
            flags,
            &mut failure,
        );
        match outcome(result) {
            Removal::Gone if result == TM_Result::TM_Ok => None,
            other => Some(other),
        }
    }
}

/// # Safety
/// The transaction has locked the table, and the row with this TID unless `deletion` is direct.
unsafe fn delete(
    table: pg_sys::Relation,
    tid: &mut pg_sys::ItemPointerData,
    deletion: Deletion,
    for_new_row: bool,
) -> Removal {
    // SAFETY: as required of the caller.
    unsafe {
        unguarded::CheckCmdReplicaIdentity(table, pg_sys::CmdType::CMD_DELETE);
        announce(deletion.relid, false);
        // Looked up again: deletion with triggers relies on them.
        let removal = if !relation::has_delete_triggers(table) {
            delete_directly(table, tid, externs::GetCurrentCommandId(true))
        } else {
            with_triggers::delete(table, tid, for_new_row)
        };
        if removal == Removal::Gone {
            announce(deletion.relid, true);
        }
        removal
    }
}

/// Deletes the row with this TID, and nothing else. What the transaction has done to it since
/// `command` began counts as a change.
///
/// # Safety
/// `table` is open and locked.
pub(super) unsafe fn delete_directly(
    table: pg_sys::Relation,
    tid: &mut pg_sys::ItemPointerData,
    command: pg_sys::CommandId,
) -> Removal {
    let mut failure = pg_sys::TM_FailureData::default();
    // SAFETY: every table access method has this function.
    unsafe {
        let Some(tuple_delete) = (*(*table).rd_tableam).tuple_delete else {
            return Removal::Kept;
        };
        let result = tuple_delete(
            table,
            tid,
            command,
            externs::GetActiveSnapshot(),
            core::ptr::null_mut(),
            true,
            &mut failure,
            false,
        );
        outcome(result)
    }
}

/// The outcome, by the table access method's answer.
fn outcome(result: TM_Result::Type) -> Removal {
    match result {
        TM_Result::TM_Ok | TM_Result::TM_Deleted => Removal::Gone,
        _ => Removal::Changed,
    }
}

/// Tells consumers of logical decoding that the extension deletes.
///
/// # Safety
/// Within a transaction that may write.
#[pg_guard]
unsafe extern "C-unwind" fn announce(relid: pg_sys::Oid, done: bool) {
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

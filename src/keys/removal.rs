//! Removes one expired row that is in the way, within the user's statement.
//!
//! Plain functions with nothing to drop: PostgreSQL's errors pass through them.

#![allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]

use super::liveness::Judge;
use super::{same_xact_children, with_triggers};
use crate::deletion::message;
use crate::pg::{catalog, externs, relation, unguarded};
use pgrx::pg_sys::{self, TM_Result, TupleTableSlot};
use pgrx::prelude::*;

/// How rows of a table are removed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deletion {
    relid: pg_sys::Oid,
    /// It sets nothing off: no trigger, no foreign key.
    direct: bool,
    /// A foreign key deletes or changes what refers to a deleted row.
    has_actions: bool,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Removal {
    /// The row is gone.
    Gone,
    /// Somebody else has changed or deleted it first.
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

/// Removes the row in the slot, which the caller has found to be expired, to make room
/// for a new one. Waits for a session that has locked it: that one may yet extend its
/// life.
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
        // A row of this very command could not be deleted by it.
        if unguarded::TransactionIdIsCurrentTransactionId(unguarded::slot_xmin(slot)) {
            unguarded::CommandCounterIncrement();
        }
        let mut place = (*slot).tts_tid;
        // Before this transaction has written anything, it has no number.
        let has_written = externs::GetTopTransactionIdIfAny() != pg_sys::InvalidTransactionId;
        if !deletion.direct
            && let Some(other) = lock(table, slot, &mut place, 0)
        {
            return other;
        }
        if deletion.has_actions && has_written {
            same_xact_children::refuse(table, slot, true);
        }
        delete(table, &mut place, deletion, true)
    }
}

/// Removes the row at this place if it is expired; if it has been updated meanwhile,
/// its newest version.
///
/// # Safety
/// The slot is for rows of the table, which the transaction has locked.
pub(super) unsafe fn remove_if_expired(
    table: pg_sys::Relation,
    slot: *mut TupleTableSlot,
    place: &mut pg_sys::ItemPointerData,
    deletion: Deletion,
    judge: &Judge,
) -> Removal {
    // SAFETY: as required of the caller; once locked, the row is in the slot.
    unsafe {
        if !fetch(table, slot, place) || judge.is_live(slot) {
            return Removal::Kept;
        }
        let newest = pg_sys::TUPLE_LOCK_FLAG_FIND_LAST_VERSION as u8;
        if let Some(other) = lock(table, slot, place, newest) {
            return other;
        }
        if judge.is_live(slot) {
            return Removal::Kept;
        }
        if deletion.has_actions {
            same_xact_children::refuse(table, slot, false);
        }
        delete(table, place, deletion, false)
    }
}

/// Reads whatever version of a row is at this place into the slot; false if there is
/// none. The place may be anyone's invention, and locking believes what it is given.
/// The slot then keeps the version from being removed until it is locked.
///
/// # Safety
/// The slot is for rows of the table, which the transaction has locked.
pub(super) unsafe fn fetch(
    table: pg_sys::Relation,
    slot: *mut TupleTableSlot,
    place: &mut pg_sys::ItemPointerData,
) -> bool {
    let mut any = pg_sys::SnapshotData {
        snapshot_type: pg_sys::SnapshotType::SNAPSHOT_ANY,
        ..Default::default()
    };
    let block = u32::from(place.ip_blkid.bi_hi) << 16 | u32::from(place.ip_blkid.bi_lo);
    let fork = pg_sys::ForkNumber::MAIN_FORKNUM;
    // SAFETY: every table access method has this function.
    unsafe {
        let Some(fetch_version) = (*(*table).rd_tableam).tuple_fetch_row_version else {
            return false;
        };
        place.ip_posid != 0
            && block < unguarded::RelationGetNumberOfBlocksInFork(table, fork)
            && fetch_version(table, place, &mut any, slot)
    }
}

/// Locks the row for deletion, and reads it into the slot; otherwise, what has become
/// of it. A DELETE that comes after it cannot meet another session, for which
/// REPEATABLE READ would have it fail.
unsafe fn lock(
    table: pg_sys::Relation,
    slot: *mut TupleTableSlot,
    place: &mut pg_sys::ItemPointerData,
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
            place,
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

unsafe fn delete(
    table: pg_sys::Relation,
    place: &mut pg_sys::ItemPointerData,
    deletion: Deletion,
    for_new_row: bool,
) -> Removal {
    // SAFETY: a row of the table, which the transaction has locked.
    unsafe {
        unguarded::CheckCmdReplicaIdentity(table, pg_sys::CmdType::CMD_DELETE);
        announce(deletion.relid, false);
        // Asked again: what the triggers' deletion relies on must be there.
        let removal = if !relation::has_delete_triggers(table) {
            delete_directly(table, place, externs::GetCurrentCommandId(true))
        } else {
            with_triggers::delete(table, place, for_new_row)
        };
        if removal == Removal::Gone {
            announce(deletion.relid, true);
        }
        removal
    }
}

/// Deletes the row at this place, and nothing else. What the transaction has done to it
/// since `command` began counts as a change.
///
/// # Safety
/// `table` is open and locked.
pub(super) unsafe fn delete_directly(
    table: pg_sys::Relation,
    place: &mut pg_sys::ItemPointerData,
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
            place,
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

/// What a row has come to, by the answer to a deletion.
fn outcome(result: TM_Result::Type) -> Removal {
    match result {
        TM_Result::TM_Ok | TM_Result::TM_Deleted => Removal::Gone,
        _ => Removal::Changed,
    }
}

/// Tells consumers of logical decoding that a deletion is the extension's.
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

//! Removes one expired row that is in the way, within the user's statement.
//!
//! Plain functions with nothing to drop: PostgreSQL's errors pass through them.

#![allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]

use super::{own_children, postponed, row};
use crate::pg::{catalog, externs, message, plain, relation, roles};
use crate::reaper;
use crate::store::TablePolicy;
use crate::visibility::statement;
use pgrx::pg_sys::{self, Datum, TM_Result, TupleTableSlot};
use pgrx::prelude::*;
use std::ffi::{CString, c_char};

/// How rows of a table are removed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deletion {
    relid: pg_sys::Oid,
    owner: pg_sys::Oid,
    /// Nobody but the table has to do with it: no trigger, rule or foreign key.
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
    /// A trigger or rule keeps it.
    Kept,
}

impl Deletion {
    /// # Safety
    /// `table` is open.
    pub(super) unsafe fn of(table: pg_sys::Relation, relid: pg_sys::Oid) -> Self {
        Self {
            relid,
            owner: catalog::class(relid).map_or(pg_sys::InvalidOid, |class| class.owner),
            // SAFETY: as required of the caller.
            direct: unsafe { !relation::deletion_concerns_others(table) },
            // SAFETY: as required of the caller.
            has_actions: unsafe { own_children::has_actions(table) },
        }
    }
}

/// Removes the row in the slot, which the caller has found to be expired, to make room
/// for a new one. Waits for
/// a session that has locked it: that one may yet extend its life.
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
        if plain::TransactionIdIsCurrentTransactionId(plain::slot_xmin(slot)) {
            plain::CommandCounterIncrement();
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
            own_children::refuse(table, slot);
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
    policy: &TablePolicy,
) -> Removal {
    // SAFETY: as required of the caller; once locked, the row is in the slot.
    unsafe {
        let newest = pg_sys::TUPLE_LOCK_FLAG_FIND_LAST_VERSION as u8;
        if let Some(other) = lock(table, slot, place, newest) {
            return other;
        }
        if row::is_live(policy, slot) {
            return Removal::Kept;
        }
        delete(table, place, deletion, false)
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
        plain::CheckCmdReplicaIdentity(table, pg_sys::CmdType::CMD_DELETE);
        announce(deletion.relid, false);
        let removal = if deletion.direct {
            delete_directly(table, place)
        } else {
            delete_by_sql(table, place, deletion, for_new_row)
        };
        announce(deletion.relid, true);
        removal
    }
}

unsafe fn delete_directly(table: pg_sys::Relation, place: &mut pg_sys::ItemPointerData) -> Removal {
    let mut failure = pg_sys::TM_FailureData::default();
    // SAFETY: every table access method has this function.
    unsafe {
        let Some(tuple_delete) = (*(*table).rd_tableam).tuple_delete else {
            return Removal::Kept;
        };
        let result = tuple_delete(
            table,
            place,
            externs::GetCurrentCommandId(true),
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

/// By a DELETE as the table's owner, with all that it sets off.
unsafe fn delete_by_sql(
    table: pg_sys::Relation,
    place: &mut pg_sys::ItemPointerData,
    deletion: Deletion,
    for_new_row: bool,
) -> Removal {
    // SAFETY: the row is locked. Identity and right return also on an error, which
    // ends the subtransaction, with which both are reset.
    unsafe {
        let query = query(deletion.relid);
        if query.is_null() {
            return Removal::Kept;
        }
        let former = roles::Identity::current();
        plain::SPI_connect();
        let mut types = [pg_sys::TIDOID];
        roles::become_role(deletion.owner);
        let plan = plain::SPI_prepare(query, 1, types.as_mut_ptr());
        let mut values = [Datum::from(core::ptr::from_mut(place))];
        statement::see_expired_rows_of(Some(deletion.relid));
        if for_new_row {
            postponed::postpone_checks(Some(deletion.relid));
        }
        plain::SPI_execute_snapshot(
            plan,
            values.as_mut_ptr(),
            core::ptr::null(),
            plain::GetLatestSnapshot(),
            core::ptr::null_mut(),
            false,
            true,
            0,
        );
        statement::see_expired_rows_of(None);
        postponed::postpone_checks(None);
        let deleted = pg_sys::SPI_processed;
        plain::SPI_finish();
        former.restore();
        if deleted == 0 {
            return Removal::Kept;
        }
        if for_new_row {
            postponed::queue(table, place);
        }
        Removal::Gone
    }
}

/// The DELETE of one row, in the current memory context; null if the table has no
/// rows that can expire any more.
#[pg_guard]
unsafe extern "C-unwind" fn query(relid: pg_sys::Oid) -> *const c_char {
    let condition = "ctid OPERATOR(pg_catalog.=) $1 AND ";
    let text = reaper::delete_query(relid, condition).and_then(|query| CString::new(query).ok());
    // SAFETY: copies the text.
    text.map_or(core::ptr::null(), |text| unsafe {
        pg_sys::pstrdup(text.as_ptr()).cast_const()
    })
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

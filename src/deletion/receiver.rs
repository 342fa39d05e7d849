//! Receivers that delete or collect a query's rows while it runs.
//!
//! The executor, in C, calls their functions, which call the table access method, in C, too.
//! They are unguarded, with nothing to drop, so that an error passes them unharmed
//! (`docs/decisions/0004-unguarded-trampolines.md`).

use super::message;
use crate::pg::gate::Visit;
use crate::pg::query::{self, nothing_at_end, nothing_at_start};
use crate::pg::relation::Open;
use crate::pg::{externs, unguarded};
use core::ffi::c_char;
use pgrx::pg_sys::{self, DestReceiver, ItemPointerData, TM_Result};
use std::ffi::CStr;

/// A row's TID, and its key: the value by which its index is ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoundRow {
    pub(crate) block: u32,
    pub(crate) offset: u16,
    /// `None`: the query gave none.
    pub(crate) key: Option<i64>,
}

impl FoundRow {
    /// Block and offset.
    pub(crate) fn tid(&self) -> (u32, u16) {
        (self.block, self.offset)
    }
}

/// What became of the rows that a query selected.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) found: u64,
    pub(crate) deleted: u64,
    /// Locked, or being changed by another session.
    pub(crate) locked: u64,
    /// The key of the first row that was not deleted because it was locked.
    pub(crate) first_locked: Option<i64>,
    pub(crate) first: Option<FoundRow>,
    pub(crate) last: Option<FoundRow>,
}

#[repr(C)]
struct DeletingReceiver {
    receiver: DestReceiver,
    relation: pg_sys::Relation,
    wait: bool,
    /// A message to be written before the first deletion; null for none.
    begin: *const c_char,
    begin_len: usize,
    tally: *mut Tally,
}

#[repr(C)]
struct CollectingReceiver {
    receiver: DestReceiver,
    rows: Vec<FoundRow>,
    limit: usize,
}

/// Runs a query that selects `ctid` and a timestamptz key of rows of the relation, and deletes
/// each row as it comes, by the table access method. No trigger fires. A locked row is skipped,
/// or waited for with `wait`; one changed since the query's snapshot is left alone in any case.
///
/// The caller holds a lock on the relation that allows deleting, and has made sure that DELETE
/// has no side effects. `begin` is written to the WAL before the first deletion. After an error,
/// `tally.last` is the row that it happened at.
pub(crate) fn delete_selected(
    visit: &Visit,
    relation: &Open,
    query: &str,
    wait: bool,
    begin: Option<&CStr>,
    tally: &mut Tally,
) {
    let mut receiver = DeletingReceiver {
        receiver: receiver(delete_row),
        relation: relation.as_ptr(),
        wait,
        begin: begin.map_or(core::ptr::null(), CStr::as_ptr),
        begin_len: begin.map_or(0, |text| text.count_bytes()),
        tally,
    };
    query::run(visit, query, &[], Some((&raw mut receiver).cast()));
}

/// Runs such a query and collects what it selects, at most `limit` rows.
pub(crate) fn collect(visit: &Visit, query: &str, limit: usize) -> Vec<FoundRow> {
    let mut receiver = CollectingReceiver {
        receiver: receiver(collect_row),
        rows: Vec::with_capacity(limit.min(10_000)),
        limit,
    };
    query::run(visit, query, &[], Some((&raw mut receiver).cast()));
    receiver.rows
}

type Receive = unsafe extern "C-unwind" fn(*mut pg_sys::TupleTableSlot, *mut DestReceiver) -> bool;

fn receiver(receive: Receive) -> DestReceiver {
    DestReceiver {
        receiveSlot: Some(receive),
        rStartup: Some(nothing_at_start),
        rShutdown: Some(nothing_at_end),
        rDestroy: Some(nothing_at_end),
        mydest: pg_sys::CommandDest::DestTuplestore,
    }
}

/// The two columns of the row.
///
/// # Safety
/// The slot holds a tid and a timestamptz.
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]
#[inline]
unsafe fn row(slot: *mut pg_sys::TupleTableSlot) -> (*mut ItemPointerData, Option<i64>) {
    // SAFETY: as required of the caller; a slot that is sent has all its values.
    unsafe {
        if (*slot).tts_nvalid < 2 {
            unguarded::slot_getsomeattrs_int(slot, 2);
        }
        let (values, nulls) = ((*slot).tts_values, (*slot).tts_isnull);
        let tid = (*values).cast_mut_ptr::<ItemPointerData>();
        let key = (!*nulls.add(1)).then(|| (*values.add(1)).value() as i64);
        (tid, key)
    }
}

/// # Safety
/// `tid` points to a valid item pointer.
#[inline]
unsafe fn found(tid: *mut ItemPointerData, key: Option<i64>) -> FoundRow {
    // SAFETY: as required of the caller.
    unsafe {
        let block = (*tid).ip_blkid;
        FoundRow {
            block: u32::from(block.bi_hi) << 16 | u32::from(block.bi_lo),
            offset: (*tid).ip_posid,
            key,
        }
    }
}

#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]
unsafe extern "C-unwind" fn delete_row(
    slot: *mut pg_sys::TupleTableSlot,
    receiver: *mut DestReceiver,
) -> bool {
    // SAFETY: the executor passes the slot and our receiver. The query's snapshot has the
    // current command ID, as in an ordinary DELETE.
    unsafe {
        let state = receiver.cast::<DeletingReceiver>();
        let (tid, key) = row(slot);
        let row = found(tid, key);
        let relation = (*state).relation;
        let Some(tuple_delete) = (*(*relation).rd_tableam).tuple_delete else {
            return false;
        };
        let tally = &mut *(*state).tally;
        tally.found += 1;
        if tally.first.is_none() {
            tally.first = Some(row);
            if !(*state).begin.is_null() {
                message::write((*state).begin, (*state).begin_len);
            }
        }
        tally.last = Some(row);
        let mut failure = pg_sys::TM_FailureData::default();
        let result = tuple_delete(
            relation,
            tid,
            externs::GetCurrentCommandId(true),
            externs::GetActiveSnapshot(),
            core::ptr::null_mut(),
            (*state).wait,
            &mut failure,
            false,
        );
        match result {
            TM_Result::TM_Ok => tally.deleted += 1,
            TM_Result::TM_BeingModified | TM_Result::TM_WouldBlock => {
                tally.locked += 1;
                if tally.first_locked.is_none() {
                    tally.first_locked = key;
                }
            }
            // Changed or deleted since; the new version is judged by itself.
            _ => {}
        }
        true
    }
}

unsafe extern "C-unwind" fn collect_row(
    slot: *mut pg_sys::TupleTableSlot,
    receiver: *mut DestReceiver,
) -> bool {
    // SAFETY: the executor passes the slot and our receiver.
    unsafe {
        let state = receiver.cast::<CollectingReceiver>();
        let (tid, key) = row(slot);
        let rows = &mut (*state).rows;
        if rows.len() < (*state).limit {
            rows.push(found(tid, key));
        }
        rows.len() < (*state).limit
    }
}

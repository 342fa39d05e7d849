//! Receivers of a query's rows that work while the query runs.
//!
//! Their functions are called by the executor and call the table access method,
//! both in C. They are plain and unguarded, with nothing to drop, so that an
//! error passes them unharmed (`docs/decisions/0004-unguarded-trampolines.md`).

use super::message;
use crate::pg::gate::Visit;
use crate::pg::query::{self, nothing_at_end, nothing_at_start};
use crate::pg::relation::Open;
use crate::pg::{externs, unguarded};
use core::ffi::c_char;
use pgrx::pg_sys::{self, DestReceiver, ItemPointerData, TM_Result};
use std::ffi::CStr;

/// A row's place on disk, and its key: the value by which its index is ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) block: u32,
    pub(crate) offset: u16,
    /// `None`: the query gave none.
    pub(crate) key: Option<i64>,
}

impl Found {
    /// Block and offset.
    pub(crate) fn place(&self) -> (u32, u16) {
        (self.block, self.offset)
    }
}

/// What became of the rows that a query gave.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) found: u64,
    pub(crate) deleted: u64,
    /// Locked or being changed by somebody else.
    pub(crate) locked: u64,
    /// The key of the first row that was not deleted because it was locked.
    pub(crate) first_locked: Option<i64>,
    pub(crate) first: Option<Found>,
    pub(crate) last: Option<Found>,
}

#[repr(C)]
struct Deleting {
    receiver: DestReceiver,
    relation: pg_sys::Relation,
    wait: bool,
    /// A message to be written before the first deletion; null for none.
    begin: *const c_char,
    begin_len: usize,
    tally: *mut Tally,
}

#[repr(C)]
struct Collecting {
    receiver: DestReceiver,
    rows: Vec<Found>,
    limit: usize,
}

/// Runs a query that selects `ctid` and a timestamptz key of rows of the
/// relation, and deletes each row as it comes, by the table access method: one
/// pass, no trigger. A row that is locked is skipped, or waited for with `wait`;
/// one that was changed since the query's snapshot is left alone in any case.
///
/// The caller holds a lock on the relation that allows to delete, and has made
/// sure that nothing but the access method has to do with a deletion. `begin` is
/// written to the log before the first one. After an error, `tally.last` is the
/// row at which it happened.
pub(crate) fn delete_selected(
    visit: &Visit,
    relation: &Open,
    query: &str,
    wait: bool,
    begin: Option<&CStr>,
    tally: &mut Tally,
) {
    let mut receiver = Deleting {
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
pub(crate) fn collect(visit: &Visit, query: &str, limit: usize) -> Vec<Found> {
    let mut receiver = Collecting {
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
unsafe fn found(tid: *mut ItemPointerData, key: Option<i64>) -> Found {
    // SAFETY: as required of the caller.
    unsafe {
        let block = (*tid).ip_blkid;
        Found {
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
    // SAFETY: the executor passes the slot and our receiver. The snapshot is the
    // query's, whose command ID is the current one, as in an ordinary DELETE.
    unsafe {
        let state = receiver.cast::<Deleting>();
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
            // Changed or deleted since: that version is judged by itself.
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
        let state = receiver.cast::<Collecting>();
        let (tid, key) = row(slot);
        let rows = &mut (*state).rows;
        if rows.len() < (*state).limit {
            rows.push(found(tid, key));
        }
        rows.len() < (*state).limit
    }
}

//! Looks the keys of a new row up, as the constraints will, and has the expired rows
//! removed that hold them.
//!
//! Plain functions with nothing to drop: PostgreSQL's errors pass through them.

#![allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]

use super::keys::{Key, Keys};
use super::removal::{self, Removal};
use super::row::{self, New};
use crate::pg::plain;
use pgrx::pg_sys::{self, Datum, TupleTableSlot};

const MAX_KEYS: usize = pg_sys::INDEX_MAX_KEYS as usize;

/// Removes the expired rows that hold a key of the new row.
///
/// # Safety
/// `keys` are those of the row's table, prepared in this statement.
pub(super) unsafe extern "C-unwind" fn free_keys(new: &New, keys: *mut Keys) {
    // SAFETY: as required of the caller.
    unsafe {
        let keys = &*keys;
        if !keys.context.is_null() {
            plain::MemoryContextReset((*keys.context).ecxt_per_tuple_memory);
        }
        new.generate(keys);
        let mut at = 0;
        while at < keys.count {
            let key = &*keys.keys.add(at);
            if new.changes(key) {
                free_key(new, keys, key);
            }
            at += 1;
        }
        new.restore(keys);
    }
}

unsafe fn free_key(new: &New, keys: &Keys, key: &Key) {
    let mut values = [Datum::null(); MAX_KEYS];
    let mut nulls = [false; MAX_KEYS];
    // SAFETY: the key is one of the row's table; the arrays hold any key.
    unsafe {
        if !keys.context.is_null() {
            (*keys.context).ecxt_scantuple = new.slot;
        }
        if !key.predicate.is_null() && !plain::holds(key.predicate, keys.context) {
            return;
        }
        plain::FormIndexDatum(
            key.info,
            new.slot,
            keys.estate,
            values.as_mut_ptr(),
            nulls.as_mut_ptr(),
        );
        // Nulls conflict with nothing, unless the constraint says so.
        let columns = key.columns.cast_unsigned() as usize;
        let mut at = 0;
        while at < columns && !(*key.info).ii_NullsNotDistinct {
            if nulls[at] {
                return;
            }
            at += 1;
        }
        let no_lock = pg_sys::NoLock.cast_signed();
        // Locked by the executor, which opens the indexes before it fires triggers.
        let index = plain::index_open(key.index, no_lock);
        let slot = plain::table_slot_create(new.relation, core::ptr::null_mut());
        let sought = Sought {
            new,
            keys,
            key,
            index,
            values: &values,
            nulls: &nulls,
        };
        let mut last = None;
        while sought.remove_one(slot, &mut last) {}
        plain::ExecDropSingleTupleTableSlot(slot);
        plain::index_close(index, no_lock);
    }
}

/// A key that is looked up.
struct Sought<'a> {
    new: &'a New,
    keys: &'a Keys,
    key: &'a Key,
    index: pg_sys::Relation,
    values: &'a [Datum; MAX_KEYS],
    nulls: &'a [bool; MAX_KEYS],
}

impl Sought<'_> {
    /// Looks for an expired row that holds the key and removes it, or waits for the
    /// transaction that is changing it; whether to look again. `last` is the place of
    /// the row that was removed last.
    unsafe fn remove_one(
        &self,
        slot: *mut TupleTableSlot,
        last: &mut Option<pg_sys::ItemPointerData>,
    ) -> bool {
        // SAFETY: index and table are open and locked, and the slot is of the table.
        unsafe {
            let mut dirty = pg_sys::SnapshotData {
                snapshot_type: pg_sys::SnapshotType::SNAPSHOT_DIRTY,
                ..Default::default()
            };
            let mut scankeys = [pg_sys::ScanKeyData::default(); MAX_KEYS];
            self.fill(&mut scankeys);
            let relation = self.new.relation;
            let scan = plain::begin_index_scan(relation, self.index, &mut dirty, self.key.columns);
            plain::index_rescan(
                scan,
                scankeys.as_mut_ptr(),
                self.key.columns,
                core::ptr::null_mut(),
                0,
            );
            let forward = pg_sys::ScanDirection::ForwardScanDirection;
            while plain::index_getnext_slot(scan, forward, slot) {
                if self.new.replaces(&(*slot).tts_tid)
                    || row::is_live(&self.keys.policy, slot)
                    || ((*scan).xs_recheck && !self.conflicts(slot))
                {
                    continue;
                }
                plain::index_endscan(scan);
                // Somebody is writing or deleting it: what becomes of it is not known
                // yet. The constraint would wait as well.
                let writer = if dirty.xmin == pg_sys::InvalidTransactionId {
                    dirty.xmax
                } else {
                    dirty.xmin
                };
                if writer == pg_sys::InvalidTransactionId {
                    let place = (*slot).tts_tid;
                    if last
                        .replace(place)
                        .is_some_and(|l| row::same_place(&l, &place))
                    {
                        // It was said to be deleted: a rule keeps it.
                        return false;
                    }
                    return removal::remove(relation, slot, self.keys.deletion) != Removal::Kept;
                }
                if dirty.speculativeToken == 0 {
                    let reason = pg_sys::XLTW_Oper::XLTW_InsertIndex;
                    plain::XactLockTableWait(writer, relation, &mut (*slot).tts_tid, reason);
                } else {
                    plain::SpeculativeInsertionWait(writer, dirty.speculativeToken);
                }
                return true;
            }
            plain::index_endscan(scan);
            false
        }
    }

    unsafe fn fill(&self, scankeys: &mut [pg_sys::ScanKeyData; MAX_KEYS]) {
        let mut at = 0;
        while at < self.key.columns.cast_unsigned() as usize {
            let flags = if self.nulls[at] {
                pg_sys::SK_ISNULL | pg_sys::SK_SEARCHNULL
            } else {
                0
            };
            // SAFETY: the index has that many key columns.
            unsafe {
                plain::ScanKeyEntryInitialize(
                    &mut scankeys[at],
                    flags.cast_signed(),
                    at as i16 + 1,
                    *self.key.strategies.add(at),
                    pg_sys::InvalidOid,
                    *(*self.index).rd_indcollation.add(at),
                    *self.key.procedures.add(at),
                    self.values[at],
                );
            }
            at += 1;
        }
    }

    /// Whether the row in the slot really has a key in conflict, where the index
    /// alone cannot tell.
    unsafe fn conflicts(&self, slot: *mut TupleTableSlot) -> bool {
        let mut values = [Datum::null(); MAX_KEYS];
        let mut nulls = [false; MAX_KEYS];
        // SAFETY: the slot holds a row of the table.
        unsafe {
            if !self.keys.context.is_null() {
                (*self.keys.context).ecxt_scantuple = slot;
            }
            let (info, estate) = (self.key.info, self.keys.estate);
            plain::FormIndexDatum(info, slot, estate, values.as_mut_ptr(), nulls.as_mut_ptr());
            let mut at = 0;
            while at < self.key.columns.cast_unsigned() as usize {
                let conflict = !nulls[at]
                    && plain::OidFunctionCall2Coll(
                        *self.key.procedures.add(at),
                        *(*self.index).rd_indcollation.add(at),
                        values[at],
                        self.values[at],
                    )
                    .value() as u8
                        != 0;
                if !conflict {
                    return false;
                }
                at += 1;
            }
        }
        true
    }
}

//! Index scans that also see rows of other sessions' open transactions (`SNAPSHOT_DIRTY`).
//!
//! Unguarded, as [`crate::pg::abi::unguarded`], unless a function says otherwise.

#![allow(ffi_unwind_calls, reason = "PostgreSQL's own longjmp passes")]

use super::relation;
use super::table::{Slot, Table};
use crate::pg::abi::unguarded;
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use pgrx::pg_sys::{self, Datum, InvalidTransactionId, Oid};

const MAX_PARTS: usize = pg_sys::INDEX_MAX_KEYS as usize;

/// The values of a key, or of a row's index entry.
pub(crate) struct KeyValues {
    pub(in crate::pg) values: [Datum; MAX_PARTS],
    pub(in crate::pg) nulls: [bool; MAX_PARTS],
}

impl KeyValues {
    pub(crate) const EMPTY: Self = Self {
        values: [Datum::null(); MAX_PARTS],
        nulls: [true; MAX_PARTS],
    };

    /// `None` for NULL.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<Datum> {
        let is_null = self.nulls.get(at).copied().unwrap_or(true);
        self.values.get(at).copied().filter(|_| !is_null)
    }

    #[inline]
    pub(crate) fn set(&mut self, at: usize, value: Option<Datum>) {
        if let (Some(to), Some(null)) = (self.values.get_mut(at), self.nulls.get_mut(at)) {
            *to = value.unwrap_or(Datum::null());
            *null = value.is_none();
        }
    }
}

/// A key column, and the operator by which two values conflict.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyColumn {
    /// 0 for an expression.
    pub(crate) attno: i16,
    pub(in crate::pg) procedure: Oid,
    pub(in crate::pg) strategy: u16,
    pub(in crate::pg) collation: Oid,
}

impl KeyColumn {
    /// Whether two values conflict.
    ///
    /// # Safety
    /// Both are values of this column.
    pub(crate) unsafe fn conflicts(&self, a: Datum, b: Datum) -> bool {
        let (procedure, collation) = (self.procedure, self.collation);
        // SAFETY: as required of the caller.
        unsafe { unguarded::OidFunctionCall2Coll(procedure, collation, a, b).value() as u8 != 0 }
    }
}

/// An open index; its table is open and locked.
#[derive(Clone, Copy)]
pub(crate) struct Index<'a> {
    index: pg_sys::Relation,
    table: Table<'a>,
}

impl Table<'_> {
    /// Opens an index that the transaction has locked; `None` if it takes no entries yet, or is of
    /// another table.
    #[inline]
    pub(crate) fn with_index<T>(self, index: Oid, work: impl FnOnce(Index<'_>) -> T) -> Option<T> {
        let no_lock = pg_sys::NoLock.cast_signed();
        // SAFETY: locked by the caller, so it cannot vanish; raises if it has.
        unsafe {
            let index = unguarded::index_open(index, no_lock);
            let form = (*index).rd_index;
            let is_ready = (*form).indisready && (*form).indrelid == self.oid();
            let result = is_ready.then(|| work(Index { index, table: self }));
            unguarded::index_close(index, no_lock);
            result
        }
    }
}

impl Index<'_> {
    /// Scans the index for a key.
    ///
    /// # Safety
    /// The slot is for rows of the index's table; the parts are the index's first columns, in
    /// order, with their values.
    #[inline]
    pub(crate) unsafe fn scan<T>(
        self,
        parts: &[KeyColumn],
        key: &KeyValues,
        slot: Slot<'_>,
        work: impl FnOnce(&mut Scan<'_>) -> T,
    ) -> T {
        let mut scankeys = MaybeUninit::<[pg_sys::ScanKeyData; MAX_PARTS]>::uninit();
        let first = scankeys.as_mut_ptr().cast::<pg_sys::ScanKeyData>();
        let count = parts.len().min(MAX_PARTS);
        let mut dirty = pg_sys::SnapshotData {
            snapshot_type: pg_sys::SnapshotType::SNAPSHOT_DIRTY,
            ..Default::default()
        };
        // SAFETY: as required of the caller; index and table are open and locked, and there is
        // room for the keys, which the scan copies.
        unsafe {
            for (at, part) in parts[..count].iter().enumerate() {
                let value = key.get(at);
                let flags = match value {
                    None => pg_sys::SK_ISNULL | pg_sys::SK_SEARCHNULL,
                    Some(_) => 0,
                };
                unguarded::ScanKeyEntryInitialize(
                    first.add(at),
                    flags.cast_signed(),
                    at as i16 + 1,
                    part.strategy,
                    pg_sys::InvalidOid,
                    part.collation,
                    part.procedure,
                    value.unwrap_or(Datum::null()),
                );
            }
            let (table, index) = (self.table.as_ptr(), self.index);
            let scan = unguarded::begin_index_scan(table, index, &mut dirty, count as i32);
            unguarded::index_rescan(scan, first, count as i32, null_mut(), 0);
            let result = work(&mut Scan { scan, slot });
            unguarded::index_endscan(scan);
            result
        }
    }
}

/// An index scan that reads into a slot.
pub(crate) struct Scan<'a> {
    scan: pg_sys::IndexScanDesc,
    slot: Slot<'a>,
}

/// A transaction that is writing or deleting a row.
#[derive(Clone, Copy)]
pub(crate) struct Writer {
    xid: pg_sys::TransactionId,
    speculative: u32,
}

impl Scan<'_> {
    /// Reads the next row version; false if there is none.
    #[inline]
    pub(crate) fn next(&mut self) -> bool {
        let forward = pg_sys::ScanDirection::ForwardScanDirection;
        // SAFETY: the value exists between `index_beginscan` and `index_endscan`.
        unsafe { unguarded::index_getnext_slot(self.scan, forward, self.slot.as_ptr()) }
    }

    /// The other transaction that is writing or deleting the row and has not ended.
    #[inline]
    pub(crate) fn writer(&self) -> Option<Writer> {
        // SAFETY: the scan's snapshot, where PostgreSQL stores that transaction.
        unsafe { writer(&*(*self.scan).xs_snapshot) }
    }

    /// Whether the key must be compared again, as the index is lossy here.
    #[inline]
    pub(crate) fn is_lossy(&self) -> bool {
        // SAFETY: the value exists between `index_beginscan` and `index_endscan`.
        unsafe { (*self.scan).xs_recheck }
    }
}

fn writer(dirty: &pg_sys::SnapshotData) -> Option<Writer> {
    let xid = if dirty.xmin == InvalidTransactionId {
        dirty.xmax
    } else {
        dirty.xmin
    };
    (xid != InvalidTransactionId).then_some(Writer {
        xid,
        speculative: dirty.speculativeToken,
    })
}

impl Writer {
    /// Waits until that transaction ends, or until its speculative insertion does.
    pub(crate) fn wait(self, row: Slot<'_>) {
        let mut tid = row.tid();
        // SAFETY: the row's table is open for as long as its slot.
        unsafe {
            if self.speculative == 0 {
                let (table, reason) = (row.table().as_ptr(), pg_sys::XLTW_Oper::XLTW_InsertIndex);
                unguarded::XactLockTableWait(self.xid, table, &mut tid, reason);
            } else {
                unguarded::SpeculativeInsertionWait(self.xid, self.speculative);
            }
        }
    }
}

/// What [`each_between`] passes to its callback.
pub(crate) enum ScannedRow<'a> {
    Entry,
    Version(Slot<'a>),
    /// A row version that another transaction is writing or deleting.
    Unfinished,
}

/// Reads the entries of a B-tree whose first column, a timestamptz or bigint, is from `first` to
/// `last`. Calls `see` with each entry and its row versions, until that returns false; returns
/// true at the end. Guarded.
pub(crate) fn each_between(
    table: &relation::OpenRelation,
    index: Oid,
    (first, last): (i64, i64),
    see: &mut dyn FnMut(ScannedRow<'_>) -> bool,
) -> bool {
    let (share, table) = (pg_sys::AccessShareLock.cast_signed(), table.table());
    // SAFETY: table and index are open and locked until the scan ends; the keys' functions compare
    // two values of the column's type.
    unsafe {
        let index = pg_sys::index_open(index, share);
        let mut dirty = pg_sys::SnapshotData {
            snapshot_type: pg_sys::SnapshotType::SNAPSHOT_DIRTY,
            ..Default::default()
        };
        let mut keys = [pg_sys::ScanKeyData::default(); 2];
        let procedures = match *(*index).rd_opcintype {
            pg_sys::TIMESTAMPTZOID => Some((pg_sys::F_TIMESTAMPTZ_GE, pg_sys::F_TIMESTAMPTZ_LE)),
            pg_sys::INT8OID => Some((pg_sys::F_INT8GE, pg_sys::F_INT8LE)),
            _ => None,
        };
        let is_fit = (*(*index).rd_index).indrelid == table.oid()
            && (*(*index).rd_rel).relam == pg_sys::BTREE_AM_OID
            && procedures.is_some();
        if let Some((from, to)) = procedures {
            let (ge, le) = (
                pg_sys::BTGreaterEqualStrategyNumber as u16,
                pg_sys::BTLessEqualStrategyNumber as u16,
            );
            pg_sys::ScanKeyInit(&mut keys[0], 1, ge, from.into(), first.into());
            pg_sys::ScanKeyInit(&mut keys[1], 1, le, to.into(), last.into());
        }
        let mut goes_on = is_fit;
        if is_fit {
            let (forward, heap) = (pg_sys::ScanDirection::ForwardScanDirection, table.as_ptr());
            let scan = at_boundary!(unguarded::begin_index_scan(heap, index, &mut dirty, 2));
            pg_sys::index_rescan(scan, keys.as_mut_ptr(), 2, null_mut(), 0);
            let slot = pg_sys::table_slot_create(heap, null_mut());
            while goes_on && !pg_sys::index_getnext_tid(scan, forward).is_null() {
                goes_on = see(ScannedRow::Entry);
                while goes_on && pg_sys::index_fetch_heap(scan, slot) {
                    goes_on = see(match writer(&dirty) {
                        Some(_) => ScannedRow::Unfinished,
                        None => ScannedRow::Version(Slot::of(slot, table)),
                    });
                    if !(*scan).xs_heap_continue {
                        break;
                    }
                }
            }
            pg_sys::index_endscan(scan);
            pg_sys::ExecDropSingleTupleTableSlot(slot);
        }
        pg_sys::index_close(index, share);
        goes_on
    }
}

/// Passes to `see` all row versions of a table that exist, until it returns false; its second argument is whether another
/// transaction is writing or deleting the version. Returns true at the end of the table. Guarded.
pub(crate) fn each_row(
    table: &relation::OpenRelation,
    see: &mut dyn FnMut(Slot<'_>, bool) -> bool,
) -> bool {
    let table = table.table();
    // SAFETY: the table is open and locked until the scan ends.
    unsafe {
        let mut dirty = pg_sys::SnapshotData {
            snapshot_type: pg_sys::SnapshotType::SNAPSHOT_DIRTY,
            ..Default::default()
        };
        let (heap, forward) = (table.as_ptr(), pg_sys::ScanDirection::ForwardScanDirection);
        #[cfg(not(since19))]
        let scan = pg_sys::table_beginscan(heap, &mut dirty, 0, null_mut());
        #[cfg(since19)]
        let scan = pg_sys::table_beginscan(heap, &mut dirty, 0, null_mut(), 0);
        let slot = pg_sys::table_slot_create(heap, null_mut());
        let mut goes_on = true;
        while goes_on && pg_sys::table_scan_getnextslot(scan, forward, slot) {
            goes_on = see(Slot::of(slot, table), writer(&dirty).is_some());
        }
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        pg_sys::table_endscan(scan);
        goes_on
    }
}

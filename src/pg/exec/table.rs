//! Tables that the transaction has locked, and slots for their rows.
//!
//! Unguarded, as [`crate::pg::abi::unguarded`], unless a function says otherwise: these types hold nothing
//! that needs dropping when PostgreSQL raises an error.

#![allow(ffi_unwind_calls, reason = "PostgreSQL's own longjmp passes")]

use crate::pg::abi::{externs, unguarded};
use core::marker::PhantomData;
use core::ptr::null_mut;
use pgrx::pg_sys::{self, Datum, ItemPointerData, Oid, TM_Result};

/// A table that is open, and locked by the transaction, for `'a`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Table<'a>(pg_sys::Relation, PhantomData<&'a pg_sys::RelationData>);

impl<'a> Table<'a> {
    /// # Safety
    /// The relation is open, and locked by the transaction, for `'a`.
    #[inline]
    pub(in crate::pg) unsafe fn of(relation: pg_sys::Relation) -> Self {
        Self(relation, PhantomData)
    }

    /// Opens a table that the transaction has locked.
    #[inline]
    pub(crate) fn with_locked<T>(relid: Oid, work: impl FnOnce(Table<'_>) -> T) -> T {
        let no_lock = pg_sys::NoLock.cast_signed();
        // SAFETY: locked by the caller, so it cannot vanish; raises if it has.
        unsafe {
            let relation = unguarded::table_open(relid, no_lock);
            let result = work(Table::of(relation));
            unguarded::table_close(relation, no_lock);
            result
        }
    }

    #[inline]
    pub(in crate::pg) fn as_ptr(self) -> pg_sys::Relation {
        self.0
    }

    #[inline]
    pub(crate) fn oid(self) -> Oid {
        // SAFETY: the constructor's caller guarantees that the table is open for `'a`.
        unsafe { (*self.0).rd_id }
    }

    /// Makes a slot for the table's rows.
    #[inline]
    pub(crate) fn with_slot<T>(self, work: impl FnOnce(Slot<'_>) -> T) -> T {
        // SAFETY: open; an error frees the slot with its memory.
        unsafe {
            let slot = unguarded::table_slot_create(self.0, null_mut());
            let result = work(Slot::of(slot, self));
            unguarded::ExecDropSingleTupleTableSlot(slot);
            result
        }
    }

    /// As [`Self::with_slot`], guarded: an error of PostgreSQL's becomes a panic.
    pub(crate) fn with_slot_guarded<T>(self, work: impl FnOnce(Slot<'_>) -> T) -> T {
        // SAFETY: open; after an error the end of the transaction frees the slot.
        unsafe {
            let slot = pg_sys::table_slot_create(self.0, null_mut());
            let result = work(Slot::of(slot, self));
            pg_sys::ExecDropSingleTupleTableSlot(slot);
            result
        }
    }

    #[inline]
    pub(crate) fn column(self, attno: i16) -> Option<&'a pg_sys::FormData_pg_attribute> {
        // SAFETY: open; the descriptor is a header and an array of that many, and a locked table
        // keeps it.
        unsafe {
            let columns = (*self.0).rd_att;
            let count = usize::try_from((*columns).natts).ok()?;
            let at = usize::try_from(attno).ok()?.checked_sub(1)?;
            #[cfg(not(since18))]
            let first = (*columns).attrs.as_ptr();
            #[cfg(since18)]
            let first = (*columns).compact_attrs.as_ptr().add(count);
            (at < count).then(|| &*first.cast::<pg_sys::FormData_pg_attribute>().add(at))
        }
    }

    /// A column, for [`Slot::has_same`]. Guarded.
    pub(crate) fn compared(self, attno: i16) -> Compared {
        let type_oid = self
            .column(attno)
            .map_or(pg_sys::InvalidOid, |it| it.atttypid);
        let (mut length, mut by_value) = (0, false);
        // SAFETY: a syscache look-up; raises if there is no such type.
        unsafe { pg_sys::get_typlenbyval(type_oid, &mut length, &mut by_value) };
        Compared {
            attno,
            type_oid,
            length,
            by_value,
        }
    }

    /// Raises the error of DELETE for a published table without a replica identity.
    #[inline]
    pub(crate) fn check_replica_identity(self) {
        // SAFETY: the constructor's caller guarantees that the table is open and locked for `'a`.
        unsafe { unguarded::CheckCmdReplicaIdentity(self.0, pg_sys::CmdType::CMD_DELETE) };
    }

    /// Deletes the row with this TID, by the table access method and as of the active snapshot: no trigger fires.
    /// With `wait` it waits for other transactions that lock the row. Own changes since `command`, or by the
    /// current command, count as concurrent. `None` if the access method cannot delete rows.
    #[inline]
    pub(crate) fn delete_at(
        self,
        mut tid: ItemPointerData,
        command: Option<pg_sys::CommandId>,
        wait: bool,
    ) -> Option<TM_Result::Type> {
        let mut failure = pg_sys::TM_FailureData::default();
        // SAFETY: the constructor's caller guarantees that the table is open and locked for `'a`; a statement
        // runs, so there is an active snapshot.
        unsafe {
            Some((*(*self.0).rd_tableam).tuple_delete?(
                self.0,
                &mut tid,
                command.unwrap_or_else(|| externs::GetCurrentCommandId(true)),
                #[cfg(since19)]
                0,
                externs::GetActiveSnapshot(),
                null_mut(),
                wait,
                &mut failure,
                #[cfg(not(since19))]
                false,
            ))
        }
    }
}

/// A column whose values are compared bit by bit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compared {
    pub(crate) attno: i16,
    type_oid: Oid,
    length: i16,
    by_value: bool,
}

/// A slot for rows of an open table; it holds one row or none.
#[derive(Clone, Copy)]
pub(crate) struct Slot<'a> {
    slot: *mut pg_sys::TupleTableSlot,
    table: Table<'a>,
}

impl<'a> Slot<'a> {
    /// # Safety
    /// The slot is for rows of the table, for `'a`.
    #[inline]
    pub(in crate::pg) unsafe fn of(slot: *mut pg_sys::TupleTableSlot, table: Table<'a>) -> Self {
        Self { slot, table }
    }

    #[inline]
    pub(in crate::pg) fn as_ptr(self) -> *mut pg_sys::TupleTableSlot {
        self.slot
    }

    #[inline]
    pub(crate) fn table(self) -> Table<'a> {
        self.table
    }

    /// The row's TID.
    #[inline]
    pub(crate) fn tid(self) -> ItemPointerData {
        // SAFETY: the constructor's caller guarantees that the slot exists for `'a`.
        unsafe { (*self.slot).tts_tid }
    }

    #[inline]
    pub(in crate::pg) fn is_empty(self) -> bool {
        // SAFETY: the constructor's caller guarantees that the slot exists for `'a`.
        u32::from(unsafe { (*self.slot).tts_flags }) & pg_sys::TTS_FLAG_EMPTY != 0
    }

    /// The value of a column; `None` for NULL. Raises an error if the row cannot be read.
    #[inline]
    pub(crate) fn value(self, attno: i16) -> Option<Datum> {
        // SAFETY: the constructor's caller guarantees that the slot exists for `'a`.
        unsafe { value_in(self.slot, attno) }
    }

    /// Whether the column has the same value, bit by bit, in another row of the table.
    #[inline]
    pub(crate) fn has_same(self, other: Slot<'_>, of: Compared) -> bool {
        let column = self.table.column(of.attno);
        match (self.value(of.attno), other.value(of.attno)) {
            (Some(a), Some(b)) => column.is_some_and(|column| {
                // SAFETY: both values are of the column's type, whose length and passing `of` has from the catalog.
                column.atttypid == of.type_oid
                    && unsafe { unguarded::datum_image_eq(a, b, of.by_value, of.length.into()) }
            }),
            (None, None) => true,
            _ => false,
        }
    }

    /// Reads all columns. The slot of a partition's row may already have read all, and rejects
    /// reading more.
    pub(crate) fn read_all(self) {
        // SAFETY: the constructor's caller guarantees that the slot exists for `'a`.
        unsafe {
            let natts = (*(*self.slot).tts_tupleDescriptor).natts;
            if natts > i32::from((*self.slot).tts_nvalid) && !self.is_empty() {
                unguarded::slot_getsomeattrs_int(self.slot, natts);
            }
        }
    }

    /// Replaces the value of a column that was read. The slot does not copy the value.
    ///
    /// # Safety
    /// The value has the column's type.
    pub(in crate::pg) unsafe fn set(self, attno: i16, value: Option<Datum>) {
        // SAFETY: as required of the caller; columns that were read are in the arrays.
        unsafe {
            if attno > 0 && attno <= (*self.slot).tts_nvalid {
                let at = usize::from(attno.cast_unsigned()) - 1;
                *(*self.slot).tts_isnull.add(at) = value.is_none();
                *(*self.slot).tts_values.add(at) = value.unwrap_or(Datum::null());
            }
        }
    }

    /// Whether this transaction wrote the row version, which is on disk.
    pub(crate) fn is_own(self) -> bool {
        let (mut isnull, xmin) = (false, pg_sys::MinTransactionIdAttributeNumber);
        // SAFETY: every kind of slot for rows on disk has this function, and the slot is not empty.
        unsafe {
            let Some(getsysattr) = (*(*self.slot).tts_ops).getsysattr else {
                return false;
            };
            !self.is_empty() && {
                let xmin = getsysattr(self.slot, xmin, &mut isnull).value() as u32;
                unguarded::TransactionIdIsCurrentTransactionId(xmin.into())
            }
        }
    }

    /// Increments the command ID if this transaction wrote the row version, as a command cannot
    /// delete a version that it wrote.
    pub(crate) fn end_command_if_own(self) {
        if self.is_own() {
            // SAFETY: a statement is running; raises an error in parallel operations.
            unsafe { unguarded::CommandCounterIncrement() };
        }
    }

    /// Reads the row version with this TID; false if there is none. The TID may come from a user;
    /// PostgreSQL does not validate it. Until the row is locked, the slot pins its page, which
    /// prevents pruning.
    pub(crate) fn fetch(self, tid: &mut ItemPointerData) -> bool {
        let mut any = pg_sys::SnapshotData {
            snapshot_type: pg_sys::SnapshotType::SNAPSHOT_ANY,
            ..Default::default()
        };
        let block = u32::from(tid.ip_blkid.bi_hi) << 16 | u32::from(tid.ip_blkid.bi_lo);
        let (table, fork) = (self.table.0, pg_sys::ForkNumber::MAIN_FORKNUM);
        // SAFETY: open and locked; the slot is for its rows.
        unsafe {
            (*(*table).rd_tableam)
                .tuple_fetch_row_version
                .is_some_and(|fetch| {
                    tid.ip_posid != 0
                        && block < unguarded::RelationGetNumberOfBlocksInFork(table, fork)
                        && fetch(table, tid, &mut any, self.slot)
                })
        }
    }

    /// Locks the row for deletion, waiting for other transactions, and reads it again. `None` if it
    /// is not a row on disk, or the access method cannot lock rows.
    pub(crate) fn lock(self, flags: u32) -> Option<TM_Result::Type> {
        let result = self.lock_at(
            self.tid_on_disk()?,
            pg_sys::LockWaitPolicy::LockWaitBlock,
            flags,
        )?;
        if result != TM_Result::TM_Ok {
            // After a failure the slot holds a tuple that is not pinned.
            self.clear();
        }
        Some(result)
    }

    /// Locks the row of the table with this TID for deletion, unless another transaction has locked
    /// it or changed it since the active snapshot. Leaves the slot empty. `None` if the access
    /// method cannot lock rows.
    pub(crate) fn try_lock(self, tid: ItemPointerData) -> Option<TM_Result::Type> {
        let result = self.lock_at(tid, pg_sys::LockWaitPolicy::LockWaitSkip, 0)?;
        self.clear();
        Some(result)
    }

    /// Locks the row with this TID, which this transaction has read, and reads it into the slot.
    fn lock_at(
        self,
        mut tid: ItemPointerData,
        wait: pg_sys::LockWaitPolicy::Type,
        flags: u32,
    ) -> Option<TM_Result::Type> {
        let (mut failure, table) = (pg_sys::TM_FailureData::default(), self.table.0);
        // SAFETY: the table is open for `'a`, and the TID is of a row that a scan of it returned.
        unsafe {
            Some((*(*table).rd_tableam).tuple_lock?(
                table,
                &mut tid,
                externs::GetActiveSnapshot(),
                self.slot,
                externs::GetCurrentCommandId(false),
                pg_sys::LockTupleMode::LockTupleExclusive,
                wait,
                flags as u8,
                &mut failure,
            ))
        }
    }

    fn clear(self) {
        // SAFETY: every kind of slot has this function.
        unsafe {
            if let Some(clear) = (*(*self.slot).tts_ops).clear {
                clear(self.slot);
            }
        }
    }

    /// Deletes only the row ([`Table::delete_at`]), waiting for other transactions that lock it. `None` also if
    /// the slot has no row of the table.
    pub(crate) fn delete(self, command: Option<pg_sys::CommandId>) -> Option<TM_Result::Type> {
        self.table.delete_at(self.tid_on_disk()?, command, true)
    }

    /// Deletes only the row, unless another transaction has locked it; returns whether it was
    /// deleted. Guarded.
    pub(crate) fn delete_if_free(self) -> bool {
        let Some(tid) = self.tid_on_disk() else {
            return false;
        };
        // SAFETY: nothing within the boundary is to be dropped.
        let result = unsafe {
            at_boundary!(
                self.table.check_replica_identity();
                self.table.delete_at(tid, None, false)
            )
        };
        result == Some(TM_Result::TM_Ok)
    }

    /// The row's TID, if it has one.
    fn tid_on_disk(self) -> Option<ItemPointerData> {
        Some(self.tid()).filter(|tid| tid.ip_posid != 0 && !self.is_empty())
    }
}

/// The value of a column in the slot; `None` for NULL, and for an empty slot.
///
/// # Safety
/// A valid slot; PostgreSQL raises an error if its rows lack the column.
#[inline]
pub(in crate::pg) unsafe fn value_in(
    slot: *mut pg_sys::TupleTableSlot,
    attno: i16,
) -> Option<Datum> {
    let at = usize::try_from(attno).ok()?.checked_sub(1)?;
    // SAFETY: as required of the caller.
    unsafe {
        if (*slot).tts_nvalid < attno {
            if u32::from((*slot).tts_flags) & pg_sys::TTS_FLAG_EMPTY != 0 {
                return None;
            }
            unguarded::slot_getsomeattrs_int(slot, attno.into());
        }
        (!*(*slot).tts_isnull.add(at)).then(|| *(*slot).tts_values.add(at))
    }
}

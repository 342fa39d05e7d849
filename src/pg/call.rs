//! Calls of functions in C that the extension's SQL declares.
//!
//! A function takes one of these as its only argument, so only PostgreSQL makes them. Unguarded,
//! as [`super::unguarded`].

#![allow(ffi_unwind_calls, reason = "PostgreSQL's own longjmp passes")]

use super::context::Context;
use super::table::{Slot, Table};
use super::{fmgr, nodes, unguarded};
use core::marker::PhantomData;
use core::ptr::NonNull;
use pgrx::pg_sys::{self, Datum, FunctionCallInfoBaseData, HeapTuple, ItemPointerData, Oid};

/// A call of a function that SQL declares with the arguments (relation oid, place tid, …).
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct RowCall<'a>(NonNull<FunctionCallInfoBaseData>, PhantomData<&'a ()>);

impl RowCall<'_> {
    fn arg(self, index: u8) -> Option<Datum> {
        // SAFETY: PostgreSQL's, with so many arguments.
        unsafe {
            (i32::from((*self.0.as_ptr()).nargs) > i32::from(index))
                .then(|| fmgr::arg(self.0.as_ptr(), index.into()))?
        }
    }

    /// Table and TID; `None` if one is NULL.
    pub(crate) fn row(self) -> Option<(Oid, ItemPointerData)> {
        let (relid, tid) = (self.arg(0)?, self.arg(1)?);
        // SAFETY: declared as a tid, which is passed by reference.
        let tid = unsafe { *tid.cast_mut_ptr::<ItemPointerData>() };
        Some((Oid::from(relid.value() as u32), tid))
    }

    /// The third argument, a boolean.
    pub(crate) fn flag(self) -> Option<bool> {
        self.arg(2).map(|flag| flag.value() as u8 != 0)
    }

    /// [`nodes::is_called_by_filter`].
    pub(crate) fn is_by_filter(self) -> bool {
        // SAFETY: the function is running.
        unsafe { nodes::is_called_by_filter(self.0.as_ptr()) }
    }
}

/// A call of a function that SQL declares as a trigger's.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct TriggerCall<'a>(NonNull<FunctionCallInfoBaseData>, PhantomData<&'a ()>);

impl<'a> TriggerCall<'a> {
    /// `None` unless it is called as a BEFORE trigger of INSERT or UPDATE, for a row.
    #[inline]
    pub(crate) fn before_write(self) -> Option<BeforeWrite<'a>> {
        // SAFETY: a call's context is null or a node, and its tag tells its type.
        let data = unsafe {
            let context = (*self.0.as_ptr()).context;
            if nodes::tag(context) != Some(pg_sys::NodeTag::T_TriggerData) {
                return None;
            }
            &*context.cast::<pg_sys::TriggerData>()
        };
        let operation = data.tg_event & pg_sys::TRIGGER_EVENT_OPMASK;
        let is_right = data.tg_event & pg_sys::TRIGGER_EVENT_ROW != 0
            && data.tg_event & pg_sys::TRIGGER_EVENT_TIMINGMASK == pg_sys::TRIGGER_EVENT_BEFORE
            && [pg_sys::TRIGGER_EVENT_INSERT, pg_sys::TRIGGER_EVENT_UPDATE].contains(&operation);
        is_right.then_some(BeforeWrite { call: self, data })
    }
}

/// A call of a BEFORE INSERT OR UPDATE trigger, for a row.
#[derive(Clone, Copy)]
pub(crate) struct BeforeWrite<'a> {
    call: TriggerCall<'a>,
    data: &'a pg_sys::TriggerData,
}

impl<'a> BeforeWrite<'a> {
    #[inline]
    pub(crate) fn is_update(self) -> bool {
        !self.data.tg_newtuple.is_null()
    }

    #[inline]
    pub(crate) fn table(self) -> Table<'a> {
        // SAFETY: open and locked as long as the statement.
        unsafe { Table::of(self.data.tg_relation) }
    }

    /// The row that is about to be written.
    #[inline]
    pub(crate) fn new_row(self) -> Slot<'a> {
        let slot = if self.is_update() {
            self.data.tg_newslot
        } else {
            self.data.tg_trigslot
        };
        // SAFETY: a row of the table.
        unsafe { Slot::of(slot, self.table()) }
    }

    /// The version that an UPDATE replaces, and its TID.
    #[inline]
    pub(crate) fn old_row(self) -> Option<(Slot<'a>, ItemPointerData)> {
        // SAFETY: a row of the table.
        self.is_update().then(|| unsafe {
            let row = Slot::of(self.data.tg_trigslot, self.table());
            (row, (*self.data.tg_trigtuple).t_self)
        })
    }

    /// The row that is about to be written, as the function returns it.
    #[inline]
    pub(crate) fn tuple(self) -> HeapTuple {
        if self.is_update() {
            self.data.tg_newtuple
        } else {
            self.data.tg_trigtuple
        }
    }

    /// The same with another timestamptz in this column.
    pub(crate) fn tuple_with(self, attno: i16, time: i64) -> HeapTuple {
        let (tuple, column, mut null) = (self.tuple(), i32::from(attno), false);
        let column_type = self.table().column(attno).map(|it| it.atttypid);
        if column_type != Some(pg_sys::TIMESTAMPTZOID) {
            return tuple;
        }
        let mut value = Datum::from(time);
        // SAFETY: a row of the table, which has such a column.
        unsafe {
            let columns = (*self.data.tg_relation).rd_att;
            let (value, null) = (&mut value, &mut null);
            unguarded::heap_modify_tuple_by_cols(tuple, columns, 1, &column, value, null)
        }
    }

    /// What the function keeps for the statement; `make` makes it in memory that lives as long.
    ///
    /// # Safety
    /// The function always keeps a `T`.
    #[inline]
    pub(crate) unsafe fn kept<T>(self, make: impl FnOnce(Context<'a>) -> &'a T) -> &'a T {
        // SAFETY: as required of the caller; the record of the function lives as long as that
        // memory.
        unsafe {
            let call = (*self.call.0.as_ptr()).flinfo;
            if (*call).fn_extra.is_null() {
                let made: *const T = make(Context::of((*call).fn_mcxt));
                (*call).fn_extra = made.cast_mut().cast();
            }
            &*(*call).fn_extra.cast::<T>()
        }
    }
}

//! Calls of C functions that the extension's SQL declares.
//!
//! An exported function takes a call as its only argument, so that only PostgreSQL can make one.
//! Unguarded, as [`crate::pg::abi::unguarded`].

#![allow(ffi_unwind_calls, reason = "PostgreSQL's own longjmp passes")]

use super::table::{Slot, Table};
use crate::pg::abi::context::Context;
use crate::pg::abi::{encoding, externs, fmgr, unguarded};
use crate::pg::catalog::expressions;
use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr::NonNull;
use pgrx::pg_sys::{
    self, Datum, FunctionCallInfo, FunctionCallInfoBaseData, HeapTuple, ItemPointerData, Oid,
};

/// A call with arguments of the types `A`, made by PostgreSQL's function manager. The SQL
/// declaration of the function in `sql/` must have these types.
#[repr(transparent)]
pub(crate) struct Call<'a, A>(FunctionCallInfo, PhantomData<&'a A>);

impl<A: Arguments> Call<'_, A> {
    /// The arguments, `None` for NULL.
    #[inline]
    pub(crate) fn args(&self) -> A::Values {
        // SAFETY: the constructor's caller guarantees that `A` are the types which SQL declares for the function.
        unsafe { A::read(self.0) }
    }

    pub(crate) fn null(&self) -> Datum {
        // SAFETY: PostgreSQL keeps the call's information until the function returns.
        unsafe { fmgr::null(self.0) }
    }
}

impl<A> Call<'_, A> {
    /// The value that this call site in a query keeps between calls, at first what `first` returns, which gets a
    /// memory context of the same life; `None` if there is no place for it. Raises an error only when out of
    /// memory.
    ///
    /// # Safety
    /// The function keeps nothing else in `fn_extra`.
    #[inline(always)]
    pub(crate) unsafe fn kept<T: Copy>(
        &self,
        first: impl FnOnce(Context<'_>) -> T,
    ) -> Option<&Cell<T>> {
        const { assert!(align_of::<T>() <= align_of::<u64>()) };
        // SAFETY: PostgreSQL keeps the call's information until the function returns. fn_extra is null or points
        // to a `Cell<T>`, as nothing else is kept there.
        unsafe {
            let info = (*self.0).flinfo;
            if info.is_null() {
                return None;
            }
            if (*info).fn_extra.is_null() {
                let memory = (*info).fn_mcxt;
                if memory.is_null() {
                    return None;
                }
                let value = Cell::new(first(Context::of(memory)));
                let kept = externs::MemoryContextAlloc(memory, size_of::<Cell<T>>());
                kept.cast::<Cell<T>>().write(value);
                (*info).fn_extra = kept;
            }
            (*info).fn_extra.cast::<Cell<T>>().as_ref()
        }
    }

    /// Whether the argument is a constant of the query, the same in each call.
    pub(crate) fn is_constant(&self, argument: i32) -> bool {
        // SAFETY: PostgreSQL keeps the call's information until the function returns.
        unsafe { expressions::has_constant(self.0, argument) }
    }

    /// Whether the filter makes this call ([`nodes::is_called_by_filter`]).
    pub(crate) fn is_by_filter(&self) -> bool {
        // SAFETY: PostgreSQL keeps the call's information until the function returns.
        unsafe { expressions::is_called_by_filter(self.0) }
    }
}

pub(crate) trait Argument {
    /// # Safety
    /// The value has this type, and stays as long as `Self`.
    unsafe fn of(datum: Datum) -> Self;
}

/// Types passed by value: `i64` is timestamptz or timestamp, `i32` integer or date.
macro_rules! by_value {
    ($($type:ty: $read:expr),+ $(,)?) => {$(
        impl Argument for $type {
            #[inline]
            unsafe fn of(datum: Datum) -> Self {
                $read(datum.value())
            }
        }
    )+};
}

by_value!(
    i64: |value| value as i64,
    i32: |value| value as i32,
    f64: |value| f64::from_bits(value as u64),
    bool: |value| value as u8 != 0,
    Oid: |value| Oid::from(value as u32),
);

/// Types passed by reference, which are copied.
macro_rules! by_reference {
    ($($type:ty),+) => {$(
        impl Argument for $type {
            #[inline]
            unsafe fn of(datum: Datum) -> Self {
                // SAFETY: as required of the caller.
                unsafe { *datum.cast_mut_ptr() }
            }
        }
    )+};
}

by_reference!(ItemPointerData, pg_sys::Interval);

/// An array of an [`Argument`] type.
pub(crate) struct Array<'a, T>(Datum, PhantomData<&'a T>);

impl<T> Argument for Array<'_, T> {
    unsafe fn of(datum: Datum) -> Self {
        Self(datum, PhantomData)
    }
}

impl<T: Argument> Array<'_, T> {
    /// The elements, `None` for NULLs; in the current memory context.
    pub(crate) fn elements(&self) -> impl Iterator<Item = Option<T>> {
        // SAFETY: the function's SQL declaration makes the argument an array of that type.
        unsafe { fmgr::elements(self.0).map(|element| element.map(|datum| T::of(datum))) }
    }
}

/// An argument of type text, read only where it is needed.
pub(crate) struct TextArgument<'a>(Datum, PhantomData<&'a ()>);

impl Argument for TextArgument<'_> {
    #[inline]
    unsafe fn of(datum: Datum) -> Self {
        Self(datum, PhantomData)
    }
}

impl TextArgument<'_> {
    /// Its bytes, in the database's encoding.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: a value of type text; what it is unpacked to stays as long as the call.
        unsafe {
            pgrx::varlena_to_byte_slice(externs::pg_detoast_datum_packed(self.0.cast_mut_ptr()))
        }
    }

    /// The text, unless it is longer than any name. Guarded.
    pub(crate) fn read_short(&self) -> Option<String> {
        // SAFETY: a value of type text, of which the first bytes are read.
        unsafe {
            let limit = pg_sys::NAMEDATALEN as i32;
            let start = pg_sys::pg_detoast_datum_slice(self.0.cast_mut_ptr(), 0, limit);
            let text = encoding::from_datum(Datum::from(start));
            (text.len() < pg_sys::NAMEDATALEN as usize).then_some(text)
        }
    }
}

/// A function's arguments: a tuple of types.
pub(crate) trait Arguments {
    type Values;

    /// # Safety
    /// A call with arguments of these types.
    unsafe fn read(call: FunctionCallInfo) -> Self::Values;
}

macro_rules! arguments {
    ($($type:ident $at:literal),+) => {
        impl<$($type: Argument),+> Arguments for ($($type,)+) {
            type Values = ($(Option<$type>,)+);

            #[inline]
            unsafe fn read(call: FunctionCallInfo) -> Self::Values {
                // SAFETY: as required of the caller.
                unsafe { ($(fmgr::arg(call, $at).map(|datum| $type::of(datum)),)+) }
            }
        }
    };
}

impl Arguments for () {
    type Values = ();

    #[inline]
    unsafe fn read(_call: FunctionCallInfo) -> Self::Values {}
}

arguments!(A 0);
arguments!(A 0, B 1);
arguments!(A 0, B 1, C 2);

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
            if expressions::tag(context) != Some(pg_sys::NodeTag::T_TriggerData) {
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
        // SAFETY: PostgreSQL fills the trigger's slots with rows of the trigger's table.
        unsafe { Slot::of(slot, self.table()) }
    }

    /// The version that an UPDATE replaces, and its TID.
    #[inline]
    pub(crate) fn old_row(self) -> Option<(Slot<'a>, ItemPointerData)> {
        // SAFETY: PostgreSQL fills the trigger's slots with rows of the trigger's table.
        self.is_update().then(|| unsafe {
            let row = Slot::of(self.data.tg_trigslot, self.table());
            (row, (*self.data.tg_trigtuple).t_self)
        })
    }

    /// Whether the UPDATE assigns to the column; of a change that is replayed, whether it has come with the column.
    pub(crate) fn assigns(self, attno: i16) -> bool {
        let bit = i32::from(attno) - pg_sys::FirstLowInvalidHeapAttributeNumber;
        // SAFETY: a set, or NULL for the empty one, that stays as long as the call; it fails for negative numbers only.
        unsafe { externs::raising::bms_is_member(bit, self.data.tg_updatedcols) }
    }

    /// The row that is about to be written, in the form that a trigger function returns.
    #[inline]
    pub(crate) fn tuple(self) -> HeapTuple {
        if self.is_update() {
            self.data.tg_newtuple
        } else {
            self.data.tg_trigtuple
        }
    }

    /// The same row with another timestamptz in this column.
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

    /// What the function keeps for the statement; `make` allocates it in memory of the same life.
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

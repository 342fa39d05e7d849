//! Calls of functions in C, with the arguments that they are declared with in SQL.

use super::{fmgr, nodes};
use core::marker::PhantomData;
use pgrx::pg_sys::{Datum, FunctionCallInfo, ItemPointerData, Oid};

/// A call with arguments of the types `A`, by PostgreSQL's function manager: nothing else makes
/// one. An exported function that takes it is declared with these types in `sql/`.
#[repr(transparent)]
pub(crate) struct Call<'a, A>(FunctionCallInfo, PhantomData<&'a A>);

impl<A: Arguments> Call<'_, A> {
    /// The arguments, `None` for NULL.
    #[inline]
    pub(crate) fn args(&self) -> A::Values {
        // SAFETY: as declared in SQL.
        unsafe { A::read(self.0) }
    }

    /// The call itself; it keeps nothing in `fn_extra`.
    #[inline]
    pub(crate) fn as_ptr(&self) -> FunctionCallInfo {
        self.0
    }

    /// Whether the filter makes it; for functions that users must not call. Unguarded.
    pub(crate) fn is_by_filter(&self) -> bool {
        // SAFETY: the call runs.
        unsafe { nodes::is_called_by_filter(self.0) }
    }

    /// Returns NULL.
    pub(crate) fn null(&self) -> Datum {
        // SAFETY: the call runs.
        unsafe { fmgr::null(self.0) }
    }
}

/// A type of arguments.
pub(crate) trait Argument {
    /// # Safety
    /// A value of that type, which stays as long as `Self`.
    unsafe fn of(datum: Datum) -> Self;
}

/// Those that are passed by value: `i64` is timestamptz or timestamp, `i32` integer or date.
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
    bool: |value| value as u8 != 0,
    Oid: |value| Oid::from(value as u32),
);

impl Argument for ItemPointerData {
    #[inline]
    unsafe fn of(datum: Datum) -> Self {
        // SAFETY: as required of the caller.
        unsafe { *datum.cast_mut_ptr() }
    }
}

/// An array of such a type.
pub(crate) struct Array<'a, T>(Datum, PhantomData<&'a T>);

impl<T> Argument for Array<'_, T> {
    unsafe fn of(datum: Datum) -> Self {
        Self(datum, PhantomData)
    }
}

impl<T: Argument> Array<'_, T> {
    /// The elements, `None` for NULLs; in the current memory context.
    pub(crate) fn elements(&self) -> impl Iterator<Item = Option<T>> {
        // SAFETY: an array of values of that type.
        unsafe { fmgr::elements(self.0).map(|element| element.map(|datum| T::of(datum))) }
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

arguments!(A 0);
arguments!(A 0, B 1);
arguments!(A 0, B 1, C 2);

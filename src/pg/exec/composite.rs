//! Rows as values of composite types.

use super::call::Argument;
use core::marker::PhantomData;
use pgrx::pg_sys::{self, Datum, Expr, Oid};

/// An argument of type `record`: a row, of a table's type or any other.
pub(crate) struct Record<'a>(Datum, PhantomData<&'a ()>);

impl Argument for Record<'_> {
    unsafe fn of(datum: Datum) -> Self {
        Self(datum, PhantomData)
    }
}

impl Record<'_> {
    /// Calls `read` with the row's columns.
    pub(crate) fn with<T>(&self, read: impl FnOnce(&Columns<'_>) -> T) -> T {
        // SAFETY: a composite value, whose header names its type; descriptor and slot are there
        // while it is read, or freed with the transaction and the memory after an error.
        unsafe {
            let header = pg_sys::pg_detoast_datum(self.0.cast_mut_ptr());
            let fields = (*header.cast::<pg_sys::HeapTupleHeaderData>())
                .t_choice
                .t_datum;
            let (type_oid, typmod) = (fields.datum_typeid, fields.datum_typmod);
            let descriptor = pg_sys::lookup_rowtype_tupdesc(type_oid, typmod);
            let slot =
                pg_sys::MakeSingleTupleTableSlot(descriptor, &raw const pg_sys::TTSOpsVirtual);
            pg_sys::ExecStoreHeapTupleDatum(Datum::from(header), slot);
            let result = read(&Columns {
                slot,
                type_oid,
                value: PhantomData,
            });
            pg_sys::ExecDropSingleTupleTableSlot(slot);
            if (*descriptor).tdrefcount >= 0 {
                pg_sys::DecrTupleDescRefCount(descriptor);
            }
            result
        }
    }
}

/// A column of the row that a function without arguments returns; `None` for NULL.
///
/// # Safety
/// The function returns a row, and the column is passed by value.
pub(crate) unsafe fn returned(function: Oid, column: i16) -> Option<Datum> {
    // SAFETY: as required of the caller.
    let row = unsafe { pg_sys::OidFunctionCall0Coll(function, Oid::INVALID) };
    Record(row, PhantomData).with(|columns| columns.value(column))
}

pub(crate) struct Columns<'a> {
    slot: *mut pg_sys::TupleTableSlot,
    type_oid: Oid,
    value: PhantomData<&'a ()>,
}

impl Columns<'_> {
    /// The relation of whose type the row is; `None` for an anonymous one.
    pub(crate) fn relation(&self) -> Option<Oid> {
        // SAFETY: the function looks the OID up in the syscache; an unknown one is no fault.
        let relation = unsafe { pg_sys::get_typ_typrelid(self.type_oid) };
        (relation != pg_sys::InvalidOid).then_some(relation)
    }

    /// The value of a column; `None` for NULL, and for a column that the row's type lacks.
    pub(crate) fn value(&self, attno: i16) -> Option<Datum> {
        let at = usize::try_from(attno).ok()?.checked_sub(1)?;
        // SAFETY: the slot is filled: its arrays have that many values.
        unsafe {
            let count = usize::try_from((*self.slot).tts_nvalid).unwrap_or(0);
            (at < count && !*(*self.slot).tts_isnull.add(at))
                .then(|| *(*self.slot).tts_values.add(at))
        }
    }

    /// Whether a condition on the columns holds; `None` for NULL.
    ///
    /// # Safety
    /// The tree is a valid condition on the columns of the row's type, before planning.
    pub(crate) unsafe fn holds(&self, condition: *mut Expr) -> Option<bool> {
        // SAFETY: as required of the caller.
        unsafe { self.value_of(condition) }.map(|value| value.value() as u8 != 0)
    }

    /// The value of an expression on the columns; `None` for NULL.
    ///
    /// # Safety
    /// As [`Self::holds`], of a type that is passed by value.
    pub(crate) unsafe fn value_of(&self, expression: *mut Expr) -> Option<Datum> {
        // SAFETY: as required of the caller; all is freed here, or with the memory after an error.
        unsafe {
            let estate = pg_sys::CreateExecutorState();
            let context = pg_sys::MakePerTupleExprContext(estate);
            (*context).ecxt_scantuple = self.slot;
            let prepared = pg_sys::ExecPrepareExpr(expression, estate);
            let mut is_null = true;
            let value = (*prepared)
                .evalfunc
                .map(|evaluate| at_boundary!(evaluate(prepared, context, &raw mut is_null)));
            pg_sys::FreeExecutorState(estate);
            value.filter(|_| !is_null)
        }
    }
}

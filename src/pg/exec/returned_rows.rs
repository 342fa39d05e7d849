//! Functions that return a set of rows of a table's type, which the call tells.

use super::query::{self, SentRow, Sql};
use crate::pg::abi::{externs, fmgr};
use crate::pg::session::gate::GateVisit;
use core::marker::PhantomData;
use pgrx::pg_sys::{self, Datum, FunctionCallInfo, HeapTupleData, Oid, Tuplestorestate};

/// A call of a function that SQL declares as `(anyelement) RETURNS SETOF anyelement`.
#[repr(transparent)]
pub(crate) struct SetCall<'a>(FunctionCallInfo, PhantomData<&'a ()>);

impl SetCall<'_> {
    /// The relation of whose type the argument is, whatever its value; `None` for other types.
    pub(crate) fn relation(&self) -> Option<Oid> {
        // SAFETY: PostgreSQL keeps the call's information until the function returns; the type is looked up.
        let relation =
            unsafe { pg_sys::get_typ_typrelid(pg_sys::get_fn_expr_argtype((*self.0).flinfo, 0)) };
        (relation != pg_sys::InvalidOid).then_some(relation)
    }

    /// Returns the rows that a query of one column, of that type, selects: all of them at once,
    /// on disk if they are many.
    pub(crate) fn return_from(&self, visit: &GateVisit, query: Sql<'_>) {
        // SAFETY: the call runs; the store is there until it ends. Nothing to drop in the closure.
        unsafe {
            pg_sys::InitMaterializedSRF(self.0, pg_sys::MAT_SRF_USE_EXPECTED_DESC);
            let store = (*(*self.0).resultinfo.cast::<pg_sys::ReturnSetInfo>()).setResult;
            query::send(visit, query, &[], |row: SentRow<'_>| {
                if let Some(value) = row.value(1) {
                    put(store, value);
                }
                true
            });
        }
    }

    /// What the function returns after [`Self::return_from`], or without it: the empty set.
    pub(crate) fn end(self) -> Datum {
        // SAFETY: PostgreSQL keeps the call's information until the function returns.
        unsafe {
            let info = (*self.0).resultinfo.cast::<pg_sys::ReturnSetInfo>();
            if !info.is_null() && (*info).setResult.is_null() {
                pg_sys::InitMaterializedSRF(self.0, pg_sys::MAT_SRF_USE_EXPECTED_DESC);
            }
            fmgr::null(self.0)
        }
    }
}

#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]
/// # Safety
/// The value is a row of the store's type.
unsafe fn put(store: *mut Tuplestorestate, value: Datum) {
    // SAFETY: as required of the caller; the store copies the row.
    unsafe {
        let header = externs::pg_detoast_datum(value.cast_mut_ptr());
        let mut row = HeapTupleData {
            t_len: pgrx::varsize_4b(header) as u32,
            t_data: header.cast(),
            ..HeapTupleData::default()
        };
        externs::tuplestore_puttuple(store, &mut row);
    }
}

//! TIDs as a query's parameter.

use super::query::Parameter;
use pgrx::pg_sys::{self, Datum, ItemPointerData};
use std::ffi::c_int;

/// An array of type `tid[]`, of blocks and offsets; in the transaction's memory.
pub(crate) fn parameter(rows: impl Iterator<Item = (u32, u16)>) -> Parameter {
    let mut tids: Vec<ItemPointerData> = rows
        .map(|(block, offset)| ItemPointerData {
            ip_blkid: pg_sys::BlockIdData {
                bi_hi: (block >> 16) as u16,
                bi_lo: block as u16,
            },
            ip_posid: offset,
        })
        .collect();
    let mut elements: Vec<Datum> = tids
        .iter_mut()
        .map(|tid| Datum::from(core::ptr::from_mut(tid)))
        .collect();
    let length = size_of::<ItemPointerData>() as c_int;
    let count = c_int::try_from(elements.len()).unwrap_or(0);
    let alignment = pg_sys::TYPALIGN_SHORT.cast_signed();
    let type_oid = pg_sys::TIDOID;
    // SAFETY: the elements, by reference, are copied into the array.
    unsafe {
        let elements = elements.as_mut_ptr();
        let array =
            pg_sys::construct_array(elements, count, type_oid, length, false, alignment as _);
        (pg_sys::get_array_type(type_oid), Some(Datum::from(array)))
    }
}

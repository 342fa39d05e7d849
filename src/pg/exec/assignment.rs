//! Rows of one table as rows of another.

use super::query;
use super::table::Slot;
use pgrx::pg_sys::{self, Oid};

/// Whether INSERT takes a value of one type for a column of the other.
pub(crate) fn is_assignable(from: Oid, to: Oid) -> bool {
    let assignment = pg_sys::CoercionContext::COERCION_ASSIGNMENT;
    // SAFETY: the function looks both OIDs up in the syscache, and stores nothing.
    unsafe { pg_sys::can_coerce_type(1, &from, &to, assignment) }
}

/// The slot's row as a parameter. Guarded.
pub(crate) fn row(slot: Slot<'_>) -> query::Parameter {
    let relid = slot.table().oid();
    // SAFETY: the slot holds a row of the table, whose row type it has.
    unsafe {
        let value = pg_sys::ExecFetchSlotHeapTupleDatum(slot.as_ptr());
        (pg_sys::get_rel_type_id(relid), Some(value))
    }
}

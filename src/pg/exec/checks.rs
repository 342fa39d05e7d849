//! CHECK constraints of the tables that a statement writes to.

use super::firing::TriggerTable;
use crate::pg::abi::context::Context;
use crate::pg::catalog::constraints::is_call;
use core::ffi::CStr;
use pgrx::pg_sys::{self, ExprState, Oid};

impl TriggerTable<'_> {
    /// Keeps the table's only CHECK constraint from being evaluated in this statement, if it calls
    /// this function with this column (`function(column)`, or that IS NOT FALSE), and is known to hold for the rows on disk. Beside others it
    /// stays: PostgreSQL prepares all or none.
    ///
    /// The catalog is unchanged. PostgreSQL prepares the constraints where it meets the first row,
    /// unless they are there already; one that is null holds.
    pub(crate) fn leave_out_only_check(self, function: Oid, attno: i16) {
        let target = self.as_ptr();
        // SAFETY: the statement has the table open and locked, so its constraints stay; they are
        // prepared in the memory of the statement.
        unsafe {
            let table = (*target).ri_RelationDesc;
            let Some(constraints) = (*(*table).rd_att).constr.as_ref() else {
                return;
            };
            if constraints.num_check != 1 || (*(*table).rd_rel).relchecks != 1 {
                return;
            }
            let check = &*constraints.check;
            let prepared = prepared(target);
            if check.ccvalid
                && (*prepared).is_null()
                && is_call(CStr::from_ptr(check.ccbin), function, attno)
            {
                *prepared = Context::of((*self.state()).es_query_cxt)
                    .within(|| pg_sys::palloc0(size_of::<*mut ExprState>()).cast());
            }
        }
    }
}

/// Where the statement keeps the table's prepared constraints.
///
/// # Safety
/// A table that a statement writes to.
unsafe fn prepared(target: *mut pg_sys::ResultRelInfo) -> *mut *mut *mut ExprState {
    // SAFETY: as required of the caller.
    unsafe {
        #[cfg(not(since18))]
        return &raw mut (*target).ri_ConstraintExprs;
        #[cfg(since18)]
        return &raw mut (*target).ri_CheckConstraintExprs;
    }
}

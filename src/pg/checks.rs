//! CHECK constraints of the tables that a statement writes to.

use super::context::Context;
use super::firing::Target;
use core::ffi::CStr;
use pgrx::pg_sys::{self, ExprState, Oid};

impl Target<'_> {
    /// Keeps the table's only CHECK constraint from being evaluated in this statement, if it calls
    /// this function with this column, and is known to hold for the rows on disk. Beside others it
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
        #[cfg(not(feature = "pg18"))]
        return &raw mut (*target).ri_ConstraintExprs;
        #[cfg(feature = "pg18")]
        return &raw mut (*target).ri_CheckConstraintExprs;
    }
}

/// Whether a stored expression is `function(column)`. The text is compared, as parsing it is most
/// of what the constraint costs.
fn is_call(stored: &CStr, function: Oid, attno: i16) -> bool {
    let then_number = |text: &str, expected: i64| {
        let digits = text.split(' ').next().unwrap_or_default();
        digits.parse() == Ok(expected)
    };
    let find = || {
        let text = stored.to_str().ok()?;
        let called = text.strip_prefix("{FUNCEXPR :funcid ")?;
        let (_, arguments) = called.split_once(" :args (")?;
        let column = arguments.strip_prefix("{VAR :varno 1 :varattno ")?;
        Some(then_number(called, function.to_u32().into()) && then_number(column, attno.into()))
    };
    find().unwrap_or(false)
}

//! CHECK constraints of the tables that a statement writes to.

use super::context::Context;
use super::firing::Target;
use core::ffi::CStr;
use pgrx::pg_sys::{self, ExprState, Oid};

impl Target<'_> {
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

/// Whether a stored expression is `function(column)`, or `function(column) IS NOT FALSE`, by its
/// text: parsing it is most of what the constraint costs.
pub(super) fn is_call(stored: &CStr, function: Oid, attno: i16) -> bool {
    const TESTED: &[u8] = b"{BOOLEANTEST :arg ";
    // `IS_NOT_FALSE` of primnodes.h.
    const NOT_FALSE: &[u8] = b"} :booltesttype 3 :location ";
    // The result is a boolean, the form that of a call.
    const BETWEEN: &[u8] =
        b" :funcresulttype 16 :funcretset false :funcvariadic false :funcformat 0 \
        :funccollid 0 :inputcollid 0 :args ({VAR :varno 1 :varattno ";
    let find = || {
        let stored = stored.to_bytes();
        let call = match stored.strip_prefix(TESTED) {
            // From the end: to search for it is a thirtieth of an INSERT.
            Some(call) => {
                let tested = call.strip_suffix(b"}")?.trim_ascii_end();
                let at = tested.iter().rposition(|&byte| byte == b' ')?;
                tested[..=at].ends_with(NOT_FALSE).then_some(call)?
            }
            None => stored,
        };
        let called = call.strip_prefix(b"{FUNCEXPR :funcid ")?;
        let (called, rest) = number(called);
        let (column, _) = number(rest.strip_prefix(BETWEEN)?);
        Some(called == function.to_u32() && Ok(attno) == column.try_into())
    };
    find() == Some(true)
}

/// The number that the text begins with, and the rest of it.
fn number(text: &[u8]) -> (u32, &[u8]) {
    let is_digit = |byte: &&u8| byte.is_ascii_digit();
    let (digits, rest) = text.split_at(text.iter().take_while(is_digit).count());
    let value = digits.iter().fold(0_u32, |value, digit| {
        value.wrapping_mul(10).wrapping_add(u32::from(digit - b'0'))
    });
    (value, rest)
}

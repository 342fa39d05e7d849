//! The time by which one call of the filter judges a row (C14).
//!
//! It is the query's own, except where PostgreSQL checks a row again that another session has
//! changed while the query waited for its lock: then it is the time after the wait
//! (`docs/decisions/0027-time-after-a-wait.md`).

use super::execution;
use super::now::now;
use crate::pg::{externs, nodes};
use core::ffi::{CStr, c_void};
use pgrx::pg_sys;

/// What `fn_extra` points to, once it is known that the call is no such check.
static ORDINARY: u8 = 1;
static CHECKED_AGAIN: u8 = 2;

/// The time by which this call judges.
///
/// # Safety
/// The argument of a function of the filter, which keeps nothing in `fn_extra`.
#[inline]
pub(crate) unsafe fn of_call(fcinfo: pg_sys::FunctionCallInfo) -> i64 {
    // SAFETY: as required of the caller.
    if unsafe { is_check_again(fcinfo) } {
        after_wait()
    } else {
        now()
    }
}

/// Whether the call is part of a check of a row that another session has changed meanwhile.
///
/// # Safety
/// As [`of_call`].
#[inline]
pub(crate) unsafe fn is_check_again(fcinfo: pg_sys::FunctionCallInfo) -> bool {
    // SAFETY: as required of the caller.
    unsafe {
        let Some(info) = (*fcinfo).flinfo.as_mut() else {
            return false;
        };
        if info.fn_extra.is_null() {
            info.fn_extra = kind_of_call(fcinfo, info.fn_mcxt);
        }
        info.fn_extra.cast_const() == address(&CHECKED_AGAIN)
    }
}

/// The time after a wait: never before the query's own.
pub(crate) fn after_wait() -> i64 {
    now().max(externs::GetCurrentTimestamp())
}

/// Whether each statement of the transaction has its own time, so that a wait counts.
pub(crate) fn waits_count() -> bool {
    // SAFETY: reads a backend-local variable.
    unsafe { pg_sys::XactIsoLevel < pg_sys::XACT_REPEATABLE_READ.cast_signed() }
}

/// Whether a call is part of such a check, as `fn_extra` keeps it. EvalPlanQual, which checks
/// rows again, has an executor state of its own that no hook sees. So its memory, which is the
/// call's, lacks the time that [`execution::keep`] leaves in every other.
///
/// # Safety
/// As [`of_call`]; the context is that of `fn_extra`.
#[cold]
unsafe fn kind_of_call(
    fcinfo: pg_sys::FunctionCallInfo,
    context: pg_sys::MemoryContext,
) -> *mut c_void {
    // SAFETY: as required of the caller; a context has a name.
    let again = unsafe {
        execution::time().is_some()
            && waits_count()
            && nodes::is_called_by_filter(fcinfo)
            && !context.is_null()
            && CStr::from_ptr((*context).name) == c"ExecutorState"
            && !execution::is_kept_in(context)
    };
    address(if again { &CHECKED_AGAIN } else { &ORDINARY }).cast_mut()
}

fn address(mark: &'static u8) -> *const c_void {
    core::ptr::from_ref(mark).cast()
}

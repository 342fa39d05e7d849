//! The time by which one call of the filter judges a row (C14).
//!
//! By the query's own, but where PostgreSQL checks a row again that somebody has changed
//! while the query waited for its lock: that goes by the time after the wait, in a state of
//! the executor that is made for it (`docs/decisions/0027-time-after-a-wait.md`).

use super::execution;
use super::now::now;
use crate::pg::{externs, nodes};
use core::ffi::{CStr, c_void};
use pgrx::pg_sys;

/// What `fn_extra` points to, once it is known where the call stands.
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

/// Whether the call stands in a check of a row that somebody else has changed meanwhile.
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
            info.fn_extra = place(fcinfo, info.fn_mcxt);
        }
        info.fn_extra.cast_const() == address(&CHECKED_AGAIN)
    }
}

/// The time after a wait: never before the query's own.
pub(crate) fn after_wait() -> i64 {
    now().max(externs::GetCurrentTimestamp())
}

/// Whether a transaction's statements judge each by its own time, so that a wait counts.
pub(crate) fn waits_count() -> bool {
    // SAFETY: reads a backend-local variable.
    unsafe { pg_sys::XactIsoLevel < pg_sys::XACT_REPEATABLE_READ.cast_signed() }
}

/// Where a call stands. EvalPlanQual, which checks rows again, has an executor's state of
/// its own, that no hook hears of: so its memory, which is the call's, lacks the time that
/// [`execution::keep`] leaves with every other.
#[cold]
unsafe fn place(fcinfo: pg_sys::FunctionCallInfo, context: pg_sys::MemoryContext) -> *mut c_void {
    // SAFETY: as required of the callers; a context has a name.
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

fn address(place: &'static u8) -> *const c_void {
    core::ptr::from_ref(place).cast()
}

//! What PostgreSQL's own errors say in addition while something of the extension's is going on.

use super::externs;
use core::ffi::{CStr, c_void};
use pgrx::PgSqlErrorCode;
use pgrx::pg_sys;

/// The CONTEXT and the HINT.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Explanation {
    pub(crate) context: &'static CStr,
    pub(crate) hint: &'static CStr,
}

/// Runs `work`; an error in it by which a row cannot be deleted, because another refers to it (23503, 23001),
/// is explained. Unguarded, with nothing to drop: errors pass through.
pub(crate) fn explaining_references<T>(
    explanation: &'static Explanation,
    work: impl FnOnce() -> T,
) -> T {
    let mut callback = pg_sys::ErrorContextCallback {
        // SAFETY: a variable of this process, which has one thread.
        previous: unsafe { pg_sys::error_context_stack },
        callback: Some(explain),
        arg: core::ptr::from_ref(explanation).cast_mut().cast(),
    };
    // SAFETY: the callback outlives its place in the stack: it is removed below, and whoever catches an
    // error in between restores the stack from before.
    unsafe { pg_sys::error_context_stack = &raw mut callback };
    let result = work();
    // SAFETY: as above.
    unsafe { pg_sys::error_context_stack = callback.previous };
    result
}

/// Called while an error is being reported. Unguarded: it neither panics nor has anything to drop.
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]
unsafe extern "C-unwind" fn explain(arg: *mut c_void) {
    let of_a_reference = [
        PgSqlErrorCode::ERRCODE_FOREIGN_KEY_VIOLATION as i32,
        PgSqlErrorCode::ERRCODE_RESTRICT_VIOLATION as i32,
    ];
    // SAFETY: an error is being reported; `arg` is an explanation, which lasts for ever. The texts are
    // arguments of a format.
    unsafe {
        if of_a_reference.contains(&externs::geterrcode()) {
            let explanation = &*arg.cast::<Explanation>();
            externs::set_errcontext_domain(core::ptr::null());
            externs::errcontext_msg(c"%s".as_ptr(), explanation.context.as_ptr());
            externs::errhint(c"%s".as_ptr(), explanation.hint.as_ptr());
        }
    }
}

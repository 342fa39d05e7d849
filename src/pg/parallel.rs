//! A number that a session gives its parallel workers: it travels as a setting.

use core::ffi::{CStr, c_void};
use pgrx::pg_sys;

/// The number; 0: none. A `double` holds all microseconds until 2285.
static mut FOR_WORKERS: f64 = 0.0;

/// Defines the setting; once, at load. No user sees or sets it. PostgreSQL passes workers the
/// settings that are not at their default, so it never is.
pub(crate) fn define(name: &'static CStr, description: &'static CStr) {
    let flags = pg_sys::GUC_NO_SHOW_ALL
        | pg_sys::GUC_NO_RESET_ALL
        | pg_sys::GUC_NOT_IN_SAMPLE
        | pg_sys::GUC_DISALLOW_IN_FILE;
    // SAFETY: in the postmaster; strings and the variable are static, the hook raises no error.
    unsafe {
        pg_sys::DefineCustomRealVariable(
            name.as_ptr(),
            description.as_ptr(),
            core::ptr::null(),
            &raw mut FOR_WORKERS,
            0.0,
            f64::MIN,
            f64::MAX,
            pg_sys::GucContext::PGC_SUSET,
            flags.cast_signed(),
            Some(check),
            None,
            None,
        );
        pg_sys::SetConfigOption(
            name.as_ptr(),
            c"0".as_ptr(),
            pg_sys::GucContext::PGC_POSTMASTER,
            pg_sys::GucSource::PGC_S_DYNAMIC_DEFAULT,
        );
    }
}

/// Accepts a value in a parallel worker only.
unsafe extern "C-unwind" fn check(
    _new_value: *mut f64,
    _extra: *mut *mut c_void,
    source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: reads a backend-local variable.
    let in_worker = unsafe { pg_sys::InitializingParallelWorker };
    in_worker || source <= pg_sys::GucSource::PGC_S_DYNAMIC_DEFAULT
}

/// Sets the number for workers that are started from now on; not in a worker.
#[inline]
pub(crate) fn tell_workers(number: i64) {
    // SAFETY: backend-local variables.
    unsafe {
        if pg_sys::ParallelWorkerNumber < 0 {
            FOR_WORKERS = number as f64;
        }
    }
}

/// The leader's number; `None` in a leader.
pub(crate) fn leaders_number() -> Option<i64> {
    // SAFETY: backend-local variables.
    unsafe {
        (pg_sys::ParallelWorkerNumber >= 0 && FOR_WORKERS != 0.0).then_some(FOR_WORKERS as i64)
    }
}

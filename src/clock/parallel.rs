//! The time of a query in parallel workers. PostgreSQL passes them the statement's time only, so
//! this one travels as a setting.

use core::ffi::{c_char, c_void};
use pgrx::pg_sys;

const NAME: *const c_char = c"ttl.execution_time".as_ptr();

/// The setting's value; 0: no query runs. A `double` holds all microseconds until 2285.
static mut TIME: f64 = 0.0;

/// Defines the setting; once, at load. No user sees or sets it. PostgreSQL passes workers the
/// settings that are not at their default, so it never is.
pub(crate) fn init() {
    let flags = pg_sys::GUC_NO_SHOW_ALL
        | pg_sys::GUC_NO_RESET_ALL
        | pg_sys::GUC_NOT_IN_SAMPLE
        | pg_sys::GUC_DISALLOW_IN_FILE;
    // SAFETY: in the postmaster; strings and the variable are static, the hook raises no error.
    unsafe {
        pg_sys::DefineCustomRealVariable(
            NAME,
            c"The time by which a query judges rows, for its parallel workers.".as_ptr(),
            core::ptr::null(),
            &raw mut TIME,
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
            NAME,
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

/// Sets the time that workers of the running query are given.
#[inline]
pub(super) fn tell_workers(time: i64) {
    // SAFETY: backend-local variables.
    unsafe {
        if pg_sys::ParallelWorkerNumber < 0 {
            TIME = time as f64;
        }
    }
}

/// The leader's time; `None` in a leader.
pub(super) fn leaders_time() -> Option<i64> {
    // SAFETY: backend-local variables.
    unsafe { (pg_sys::ParallelWorkerNumber >= 0 && TIME != 0.0).then_some(TIME as i64) }
}

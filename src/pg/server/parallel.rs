//! A number that a session passes to its parallel workers in a setting.

use core::ffi::{CStr, c_void};
use pgrx::pg_sys;

/// The number; 0 for none. A `double` is exact for microseconds until 2285.
static mut FOR_WORKERS: f64 = 0.0;

/// Defines the setting; called once, at load. Users cannot see or set it. PostgreSQL passes to
/// workers only settings that differ from their default, so the source is never the default.
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

/// Rejects values from outside a parallel worker.
unsafe extern "C-unwind" fn check(
    _new_value: *mut f64,
    _extra: *mut *mut c_void,
    source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: reads a variable that only this process writes.
    let in_worker = unsafe { pg_sys::InitializingParallelWorker };
    in_worker || source <= pg_sys::GucSource::PGC_S_DYNAMIC_DEFAULT
}

/// Sets the number for parallel workers started later; does nothing in a worker.
#[inline]
pub(crate) fn tell_workers(number: i64) {
    // SAFETY: variables that only this process uses.
    unsafe {
        if pg_sys::ParallelWorkerNumber < 0 {
            FOR_WORKERS = number as f64;
        }
    }
}

/// The leader's number; `None` in the leader, and if none was set.
pub(crate) fn leaders_number() -> Option<i64> {
    // SAFETY: variables that only this process uses.
    unsafe {
        (pg_sys::ParallelWorkerNumber >= 0 && FOR_WORKERS != 0.0).then_some(FOR_WORKERS as i64)
    }
}

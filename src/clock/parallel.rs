//! The time of an execution in parallel workers, to which PostgreSQL hands the time of the
//! statement only: it goes along with the settings.

use core::ffi::{c_char, c_void};
use pgrx::pg_sys;

const NAME: *const c_char = c"ttl.execution_time".as_ptr();

/// What the setting holds; 0: no query runs. A `double` has all microseconds until 2285.
static mut TIME: f64 = 0.0;

/// Defines the setting; once, at load. It is nobody's to see or set. PostgreSQL hands
/// settings to workers that are not at their default, so it never is.
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

/// Only a worker is given a value.
unsafe extern "C-unwind" fn check(
    _new_value: *mut f64,
    _extra: *mut *mut c_void,
    source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: reads a backend-local variable.
    let in_worker = unsafe { pg_sys::InitializingParallelWorker };
    in_worker || source <= pg_sys::GucSource::PGC_S_DYNAMIC_DEFAULT
}

/// The time is that of the execution that is running now, for workers it may start.
#[inline]
pub(super) fn tell_workers(time: i64) {
    // SAFETY: backend-local variables.
    unsafe {
        if pg_sys::ParallelWorkerNumber < 0 {
            TIME = time as f64;
        }
    }
}

/// The time of the leader's execution; `None` in a leader.
pub(super) fn leaders_time() -> Option<i64> {
    // SAFETY: backend-local variables.
    unsafe { (pg_sys::ParallelWorkerNumber >= 0 && TIME != 0.0).then_some(TIME as i64) }
}

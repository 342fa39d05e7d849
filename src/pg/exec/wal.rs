//! Logical decoding messages in the WAL.

use pgrx::{pg_guard, pg_sys};
use std::ffi::CStr;

/// Whether changes are logged for logical decoding: wal_level is logical, or, from 19 on, a
/// logical slot exists.
pub(crate) fn is_logical() -> bool {
    // SAFETY: reads a setting's variable, which only this process writes.
    let by_level =
        unsafe { pg_sys::wal_level >= pg_sys::WalLevel::WAL_LEVEL_LOGICAL.cast_signed() };
    #[cfg(since19)]
    // SAFETY: reads a variable that only this process writes.
    let by_slot = unsafe { pg_sys::XLogLogicalInfo };
    #[cfg(not(since19))]
    let by_slot = false;
    by_level || by_slot
}

/// Writes a transactional message; also while a query sends rows, whose frames an error may skip.
#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
pub(crate) extern "C-unwind" fn write_message(prefix: &CStr, message: &CStr) {
    let length = message.count_bytes();
    // SAFETY: both are C strings, of which the function copies the message by its length.
    unsafe {
        #[cfg(not(since17))]
        pg_sys::LogLogicalMessage(prefix.as_ptr(), message.as_ptr(), length, true);
        #[cfg(since17)]
        pg_sys::LogLogicalMessage(prefix.as_ptr(), message.as_ptr(), length, true, false);
    }
}

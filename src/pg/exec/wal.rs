//! Logical decoding messages in the WAL.

use super::query::SentRow;
use pgrx::pg_sys;
use std::ffi::{CStr, c_char};

unsafe extern "C-unwind" {
    /// From message.c; pgrx does not bind it.
    fn LogLogicalMessage(
        prefix: *const c_char,
        message: *const c_char,
        size: usize,
        transactional: bool,
        #[cfg(since17)] flush: bool,
    ) -> pg_sys::XLogRecPtr;
}

/// Whether changes are logged for logical decoding: wal_level is logical, or, from 19 on, a
/// logical slot exists.
pub(crate) fn is_logical() -> bool {
    // SAFETY: reads a setting's variable, which only this process writes.
    let by_level =
        unsafe { pg_sys::wal_level >= pg_sys::WalLevel::WAL_LEVEL_LOGICAL.cast_signed() };
    #[cfg(since19)]
    unsafe extern "C" {
        /// xlog.h; the process keeps it up to date at barriers.
        static XLogLogicalInfo: bool;
    }
    #[cfg(since19)]
    // SAFETY: reads a variable that only this process writes.
    let by_slot = unsafe { XLogLogicalInfo };
    #[cfg(not(since19))]
    let by_slot = false;
    by_level || by_slot
}

/// Writes a transactional message.
pub(crate) fn write_message(prefix: &CStr, message: &CStr) {
    // SAFETY: the boundary catches the error, so no Rust frame is skipped.
    unsafe {
        at_boundary!(write(prefix, message));
    }
}

/// The same while a query sends rows.
pub(crate) fn write_message_at(_row: SentRow<'_>, prefix: &CStr, message: &CStr) {
    // SAFETY: in a row callback, errors pass through.
    unsafe { write(prefix, message) }
}

/// # Safety
/// PostgreSQL's errors pass through, so nothing may need dropping.
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]
unsafe fn write(prefix: &CStr, message: &CStr) {
    let length = message.count_bytes();
    // SAFETY: as required of the caller; the message is copied.
    unsafe {
        #[cfg(not(since17))]
        LogLogicalMessage(prefix.as_ptr(), message.as_ptr(), length, true);
        #[cfg(since17)]
        LogLogicalMessage(prefix.as_ptr(), message.as_ptr(), length, true, false);
    }
}

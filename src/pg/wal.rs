//! Messages in the WAL for consumers of logical decoding.

use super::query::SentRow;
use pgrx::pg_sys;
use std::ffi::{CStr, c_char};

unsafe extern "C-unwind" {
    /// message.c, which pgrx does not bind.
    fn LogLogicalMessage(
        prefix: *const c_char,
        message: *const c_char,
        size: usize,
        transactional: bool,
        #[cfg(not(any(feature = "pg15", feature = "pg16")))] flush: bool,
    ) -> pg_sys::XLogRecPtr;
}

/// Whether the WAL is written for logical decoding.
pub(crate) fn is_logical() -> bool {
    // SAFETY: reads a setting.
    unsafe { pg_sys::wal_level >= pg_sys::WalLevel::WAL_LEVEL_LOGICAL.cast_signed() }
}

/// Writes a message that belongs to the transaction.
pub(crate) fn write_message(prefix: &CStr, message: &CStr) {
    // SAFETY: an error is caught at the boundary.
    unsafe {
        at_boundary!(write(prefix, message));
    }
}

/// The same at a row that was sent.
pub(crate) fn write_message_at(_row: SentRow<'_>, prefix: &CStr, message: &CStr) {
    // SAFETY: where a row is sent, errors pass through.
    unsafe { write(prefix, message) }
}

/// # Safety
/// PostgreSQL's errors pass through: nothing is to be dropped.
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]
unsafe fn write(prefix: &CStr, message: &CStr) {
    let length = message.count_bytes();
    // SAFETY: as required of the caller; the message is copied.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        LogLogicalMessage(prefix.as_ptr(), message.as_ptr(), length, true);
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
        LogLogicalMessage(prefix.as_ptr(), message.as_ptr(), length, true, false);
    }
}

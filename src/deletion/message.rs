//! Messages in the write-ahead log, for consumers of logical decoding: they
//! surround the deletions of the extension.

use crate::pg::at_boundary;
use crate::pg::externs::raising;
use core::ffi::c_char;
use pgrx::pg_sys;
use serde::Serialize;
use std::ffi::{CStr, CString};

/// The prefix by which a consumer tells the extension's messages.
const PREFIX: &CStr = c"ttl";

/// The text of the message before the first deletion in a table; `None` where
/// the server's log is not made for logical decoding.
pub(crate) fn for_begin(table: &str) -> Option<CString> {
    is_wanted().then(|| text(table, "begin", None))?
}

/// Writes the message before the deletions in a table.
pub(crate) fn begin(table: &str) {
    emit(for_begin(table).as_deref());
}

/// Writes the message after the deletions in a table.
pub(crate) fn end(table: &str, rows: u64) {
    if is_wanted() {
        emit(text(table, "end", Some(rows)).as_deref());
    }
}

/// A message's content.
#[derive(Serialize)]
struct Content<'a> {
    table: &'a str,
    event: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<u64>,
}

fn text(table: &str, event: &str, rows: Option<u64>) -> Option<CString> {
    let content = serde_json::to_string(&Content { table, event, rows });
    Some(crate::pg::encoding::shown(&content.ok()?))
}

/// Whether the server's log is made for logical decoding.
pub(crate) fn is_wanted() -> bool {
    // SAFETY: reads a setting.
    unsafe { pg_sys::wal_level >= pg_sys::WalLevel::WAL_LEVEL_LOGICAL.cast_signed() }
}

fn emit(message: Option<&CStr>) {
    let Some(message) = message else { return };
    // SAFETY: within a transaction that may write; an error is caught at the boundary.
    unsafe {
        at_boundary!(write(message.as_ptr(), message.count_bytes()));
    }
}

/// Writes a message that belongs to the transaction.
///
/// # Safety
/// `message` has `length` bytes. Raises PostgreSQL's errors as they are: to be
/// called through a boundary, or from a plain function with nothing to drop.
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]
pub(crate) unsafe fn write(message: *const c_char, length: usize) {
    // SAFETY: as required of the caller; the message is copied.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        raising::LogLogicalMessage(PREFIX.as_ptr(), message, length, true);
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
        raising::LogLogicalMessage(PREFIX.as_ptr(), message, length, true, false);
    }
}

//! Messages in the WAL before and after the extension's deletions, for consumers of logical
//! decoding.

use crate::pg::exec::wal;
use crate::settings;
use serde::Serialize;
use std::ffi::{CStr, CString};

/// The prefix by which a consumer tells the extension's messages.
pub(super) const PREFIX: &CStr = c"ttl";

pub(crate) fn is_wanted() -> bool {
    settings::logical_messages() && wal::is_logical()
}

/// The text of the message before the first deletion in a table; `None` if
/// deletions are not marked.
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
    Some(crate::pg::abi::encoding::shown(&content.ok()?))
}

fn emit(message: Option<&CStr>) {
    if let Some(message) = message {
        wal::write_message(PREFIX, message);
    }
}

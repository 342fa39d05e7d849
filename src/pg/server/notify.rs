//! NOTIFY.

use crate::pg::abi::encoding;
use pgrx::pg_sys;

/// Sends the message when the transaction commits, if the database's encoding has its characters
/// and it is short enough.
pub(crate) fn send(channel: &str, payload: &str) {
    let (Some(channel), Some(payload)) =
        (encoding::to_server(channel), encoding::to_server(payload))
    else {
        return;
    };
    // NOTIFY_PAYLOAD_MAX_LENGTH of async.c.
    const LONGEST: usize = 8000;
    let fits = |text: &core::ffi::CStr, most: usize| (1..most).contains(&text.count_bytes());
    if fits(&channel, pg_sys::NAMEDATALEN as usize) && fits(&payload, LONGEST) {
        // SAFETY: a transaction is open, and the function copies both strings.
        unsafe { pg_sys::Async_Notify(channel.as_ptr(), payload.as_ptr()) };
    }
}

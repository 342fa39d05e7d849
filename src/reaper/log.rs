//! What goes to the server's log: problems, with a hint; nothing for each row.

use pgrx::prelude::*;
use pgrx::{PgLogLevel, PgSqlErrorCode, pg_sys::panic::ErrorReport};
use std::cell::RefCell;
use std::collections::HashSet;

thread_local! {
    static SAID: RefCell<HashSet<String>> = RefCell::new(HashSet::new());
}

/// A problem.
pub(super) fn warning(message: &str, hint: &str) {
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_WARNING,
        message.to_owned(),
        function_name!(),
    )
    .set_hint(hint.to_owned())
    .report(PgLogLevel::WARNING);
}

/// A problem that this process reports only once, until [`over`].
pub(super) fn once(topic: &str, message: &str, hint: &str) {
    if SAID.with_borrow_mut(|said| said.insert(topic.to_owned())) {
        warning(message, hint);
    }
}

/// A problem that is over: the next time it is reported again.
pub(super) fn over(topic: &str) {
    SAID.with_borrow_mut(|said| said.remove(topic));
}

/// What happens by design.
pub(super) fn debug(message: &str) {
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        message.to_owned(),
        function_name!(),
    )
    .report(PgLogLevel::DEBUG1);
}

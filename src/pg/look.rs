//! Looking at an object of somebody else's: whatever is wrong with it is a finding.

use super::{session, txn};
use crate::error::Error;
use pgrx::PgSqlErrorCode;

/// Runs `work`, which looks at one object. Its error is returned, so that the others are
/// shown; and it is an error that a lock is to be waited for, which a stranger may hold for
/// as long as they like. `work` is to be such as never asks for one.
///
/// Raised is what the session itself is told: that the statement is cancelled.
pub(crate) fn at<T>(work: impl FnOnce() -> T) -> Result<T, Error> {
    let looked = txn::nested(|| Ok(session::without_waiting(work)));
    match looked {
        Err(failure) if ends_statement(failure.code) => failure.raise(),
        looked => looked,
    }
}

fn ends_statement(code: PgSqlErrorCode) -> bool {
    [
        PgSqlErrorCode::ERRCODE_QUERY_CANCELED,
        PgSqlErrorCode::ERRCODE_ADMIN_SHUTDOWN,
        PgSqlErrorCode::ERRCODE_CRASH_SHUTDOWN,
        PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
    ]
    .contains(&code)
}

//! Looks at other owners' objects: whatever is wrong with one is a finding.

use super::txn;
use crate::error::Error;
use crate::pg::session;
use pgrx::PgSqlErrorCode;

/// Runs `work`, which looks at one object. Its error is returned, so that other objects are
/// still shown. To wait for a lock is an error, as another owner may hold it for as long as they
/// like; `work` must be such that it never asks for one.
///
/// Cancellation of the statement is raised.
pub(crate) fn contain<T>(work: impl FnOnce() -> T) -> Result<T, Error> {
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

//! Errors about what stands in a policy.

use crate::error::Error;
use pgrx::PgSqlErrorCode;

/// 22023: what is wrong with a policy.
pub(super) fn invalid(message: impl Into<String>) -> Error {
    Error::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message)
}

/// 54000: there is more in a policy than one may have.
pub(super) fn limit(message: String, hint: &str) -> Error {
    Error::new(PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED, message).hint(hint)
}

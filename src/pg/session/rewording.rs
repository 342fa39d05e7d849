//! What errors of PostgreSQL say when they pass through the extension.

use crate::error::Error;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::{PgSqlErrorCode, PgTryBuilder};
use std::panic::AssertUnwindSafe;

/// Runs `work`; its error is raised with this HINT if it has none.
pub(crate) fn hinting<T>(hint: &str, work: impl FnOnce() -> T) -> T {
    rewording(None, hint, work)
}

/// As [`hinting`], but only if a privilege is missing (42501).
pub(crate) fn hinting_at_missing_privileges<T>(hint: &str, work: impl FnOnce() -> T) -> T {
    hinting_at(PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE, hint, work)
}

/// As [`hinting`], but only for this SQLSTATE.
pub(crate) fn hinting_at<T>(code: PgSqlErrorCode, hint: &str, work: impl FnOnce() -> T) -> T {
    PgTryBuilder::new(AssertUnwindSafe(work))
        .catch_when(code, |error| reword(error, None, hint))
        .execute()
}

/// As [`hinting_at`], for several SQLSTATEs.
pub(crate) fn hinting_at_each<T>(hints: &[(PgSqlErrorCode, &str)], work: impl FnOnce() -> T) -> T {
    let start = PgTryBuilder::new(AssertUnwindSafe(work));
    let caught = hints.iter().fold(start, |caught, &(code, hint)| {
        caught.catch_when(code, move |error| reword(error, None, hint))
    });
    caught.execute()
}

/// As [`hinting_at`], but in place of the HINT that the error has.
pub(crate) fn replacing_hint_at<T>(
    code: PgSqlErrorCode,
    hint: &str,
    work: impl FnOnce() -> T,
) -> T {
    PgTryBuilder::new(AssertUnwindSafe(work))
        .catch_when(code, |error| Error::of(error).hint(hint).raise())
        .execute()
}

/// Runs `work`, which parses a command's field; its error names the field.
pub(crate) fn naming<T>(field: &str, hint: &str, work: impl FnOnce() -> T) -> T {
    rewording(Some(field), hint, work)
}

/// Runs `work`; the message of its error ends with what was being done. Without `shows_rows` it has
/// no DETAIL, which may have values of rows.
pub(crate) fn explaining<T>(doing: &str, shows_rows: bool, work: impl FnOnce() -> T) -> T {
    PgTryBuilder::new(AssertUnwindSafe(work))
        .catch_others(|error| {
            let mut error = Error::of(error).because(doing);
            error.detail = error.detail.filter(|_| shows_rows);
            error.raise()
        })
        .execute()
}

fn rewording<T>(field: Option<&str>, hint: &str, work: impl FnOnce() -> T) -> T {
    PgTryBuilder::new(AssertUnwindSafe(work))
        .catch_others(|error| reword(error, field, hint))
        .execute()
}

fn reword(error: CaughtError, field: Option<&str>, hint: &str) -> ! {
    if let CaughtError::RustPanic { .. } = error {
        error.rethrow()
    }
    let mut error = Error::of(error);
    if let Some(field) = field {
        error.message = format!("\"{field}\": {}", error.message);
    }
    error.or_hint(hint).raise()
}

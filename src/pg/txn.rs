//! Transactions of a background worker.

use super::roles;
use super::timeout::Limit;
use crate::error::TtlError;
use crate::settings;
use pgrx::pg_sys::panic::{CaughtError, ErrorReport};
use pgrx::prelude::*;
use pgrx::{PgLogLevel, PgSqlErrorCode, PgTryBuilder};
use std::ffi::CStr;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

/// An error that ended a transaction; what remains of it.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) code: PgSqlErrorCode,
    pub(crate) message: String,
    pub(crate) detail: Option<String>,
}

impl Failure {
    pub(crate) fn new(code: PgSqlErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            detail: None,
        }
    }

    fn of(error: CaughtError) -> Self {
        let (CaughtError::PostgresError(report)
        | CaughtError::ErrorReport(report)
        | CaughtError::RustPanic {
            ereport: report, ..
        }) = error;
        Self {
            code: report.sql_error_code(),
            message: report.message().to_owned(),
            detail: report.detail().map(str::to_owned),
        }
    }

    /// The error's five characters.
    pub(crate) fn sqlstate(&self) -> String {
        // SAFETY: returns a static buffer with a C string.
        unsafe { CStr::from_ptr(pg_sys::unpack_sql_state(self.code as i32)) }
            .to_string_lossy()
            .into_owned()
    }

    /// Adds what has caused it.
    pub(crate) fn because(mut self, cause: &str) -> Self {
        self.message = format!("{} ({cause})", self.message);
        self
    }

    /// Ends the process with this error.
    pub(crate) fn raise_fatal(self) -> ! {
        ErrorReport::new(self.code, self.message, function_name!()).report(PgLogLevel::FATAL);
        unreachable!("FATAL does not return")
    }

    /// Message and detail in one line.
    pub(crate) fn text(&self) -> String {
        match &self.detail {
            Some(detail) => format!("{}: {detail}", self.message),
            None => self.message.clone(),
        }
    }
}

impl From<TtlError> for Failure {
    fn from(error: TtlError) -> Self {
        let (code, message, detail) = error.into_parts();
        Self {
            code,
            message,
            detail,
        }
    }
}

/// Runs `work` in a transaction of its own and commits, within the time limit of
/// `ttl.statement_timeout`, since functions of users may be called wherever a
/// query is planned. After an error, of
/// `work` or of the commit, the transaction is rolled back and the error
/// returned; an `Err` that `work` returns does the same.
///
/// `work` may change identity by [`roles::become_role`]: the former one returns
/// after the end of the transaction, so that what runs at commit (deferred
/// triggers) runs under the new one.
pub(crate) fn run<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    run_within(settings::statement_timeout(), work)
}

/// As [`run`], within another time limit.
pub(crate) fn run_within<T>(
    limit: Duration,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let identity = roles::Identity::current();
    let _limit = Limit::start(limit);
    let attempt = AssertUnwindSafe(|| {
        // SAFETY: a background worker that is connected and in no transaction.
        // Its clock would stand still without the first call.
        unsafe {
            pg_sys::SetCurrentStatementStartTimestamp();
            pg_sys::StartTransactionCommand();
            pg_sys::AcceptInvalidationMessages();
            pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        }
        let result = work()?;
        // SAFETY: the snapshot pushed above; the transaction begun above.
        unsafe {
            pg_sys::PopActiveSnapshot();
            pg_sys::CommitTransactionCommand();
        }
        Ok(result)
    });
    let result = PgTryBuilder::new(attempt)
        .catch_others(|error| Err(Failure::of(error)))
        .catch_rust_panic(|error| Err(Failure::of(error)))
        .execute();
    if result.is_err() {
        // SAFETY: valid in any state; also restores the identity from before the transaction.
        unsafe { pg_sys::AbortCurrentTransaction() };
    }
    identity.restore();
    result.map_err(|failure| {
        if Limit::exceeded() {
            failure.because("statement timeout, see ttl.statement_timeout")
        } else {
            failure
        }
    })
}

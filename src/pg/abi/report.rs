//! Passes errors to PostgreSQL, and back.

use super::encoding;
use crate::error::{Error, Result};
use pgrx::pg_sys::panic::{CaughtError, ErrorReport};
use pgrx::prelude::*;
use std::ffi::CStr;

/// The next error of this statement is raised without the context that its callers would add.
pub(crate) fn without_context() {
    // SAFETY: a backend-local list of callbacks, which PostgreSQL puts back where it catches the error.
    unsafe { pg_sys::error_context_stack = core::ptr::null_mut() };
}

impl Error {
    /// What is kept of a caught error.
    pub(in crate::pg) fn of(error: CaughtError) -> Self {
        let (CaughtError::PostgresError(report)
        | CaughtError::ErrorReport(report)
        | CaughtError::RustPanic {
            ereport: report, ..
        }) = error;
        Self {
            code: report.sql_error_code(),
            message: report.message().to_owned(),
            detail: report.detail().map(str::to_owned),
            hint: report.hint().map(str::to_owned),
        }
    }

    /// The error's five-character SQLSTATE.
    pub(crate) fn sqlstate(&self) -> String {
        // SAFETY: returns a static buffer with a C string.
        unsafe { CStr::from_ptr(pg_sys::unpack_sql_state(self.code as i32)) }
            .to_string_lossy()
            .into_owned()
    }

    /// Ends the process with this error.
    pub(crate) fn raise_fatal(self) -> ! {
        self.report(PgLogLevel::FATAL);
        unreachable!("FATAL does not return")
    }

    /// Raises the error; does not return.
    #[track_caller]
    pub(crate) fn raise(self) -> ! {
        self.report(PgLogLevel::ERROR);
        unreachable!("an ERROR does not return")
    }

    #[track_caller]
    pub(crate) fn warn(self) {
        self.report(PgLogLevel::WARNING);
    }

    #[track_caller]
    pub(crate) fn notice(self) {
        self.report(PgLogLevel::NOTICE);
    }

    #[track_caller]
    fn report(self, level: PgLogLevel) {
        let message = encoding::for_message(self.message);
        let mut report = ErrorReport::new(self.code, message, function_name!());
        if let Some(detail) = self.detail {
            report = report.set_detail(encoding::for_message(detail));
        }
        if let Some(hint) = self.hint {
            report = report.set_hint(encoding::for_message(hint));
        }
        report.report(level);
    }
}

/// The value, or the error raised.
pub(crate) fn or_raise<T>(result: Result<T>) -> T {
    result.unwrap_or_else(|error| error.raise())
}

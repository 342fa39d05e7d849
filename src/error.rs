//! The one error type: SQLSTATE, message, DETAIL, HINT. `pg::report` raises it; errors that name
//! tables are in `store::errors`.

use pgrx::PgSqlErrorCode;

/// An error that a user can cause, or one that was caught. PostgreSQL's message style: the
/// message in lower case without a full stop, DETAIL and HINT as sentences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Error {
    pub(crate) code: PgSqlErrorCode,
    pub(crate) message: String,
    pub(crate) detail: Option<String>,
    pub(crate) hint: Option<String>,
}

/// What the functions behind the SQL surface return.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn new(code: PgSqlErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            detail: None,
            hint: None,
        }
    }

    /// What is said and fails nothing, to be raised with [`Self::notice`].
    pub(crate) fn for_notice(message: impl Into<String>) -> Self {
        Error::new(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, message)
    }

    /// 55000: something else has to be done before.
    pub(crate) fn not_ready(message: impl Into<String>) -> Self {
        Self::new(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            message,
        )
    }

    /// 22023: an argument or option has a wrong value.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message)
    }

    /// 0A000: it cannot be had.
    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED, message)
    }

    /// 42809: the object is of another kind.
    pub(crate) fn wrong_kind(message: impl Into<String>) -> Self {
        Self::new(PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE, message)
    }

    /// 42501: the user lacks a privilege.
    pub(crate) fn denied(message: impl Into<String>) -> Self {
        Self::new(PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE, message)
    }

    /// 01000: a warning, to be raised with [`Self::warn`].
    pub(crate) fn for_warning(message: impl Into<String>) -> Self {
        Self::new(PgSqlErrorCode::ERRCODE_WARNING, message)
    }

    pub(crate) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// 55000: the library is not preloaded.
    pub(crate) fn not_preloaded() -> Self {
        Self::not_ready("ttl_ext must be loaded via \"shared_preload_libraries\"")
        .detail("The library installs hooks that every session needs.")
        .hint("Add ttl_ext to \"shared_preload_libraries\" in postgresql.conf and restart the server.")
    }

    /// Sets the hint, if there is none yet.
    pub(crate) fn or_hint(mut self, hint: &str) -> Self {
        self.hint.get_or_insert_with(|| hint.to_owned());
        self
    }

    /// Adds what has caused it.
    pub(crate) fn because(mut self, cause: &str) -> Self {
        self.message = format!("{} ({cause})", self.message);
        self
    }

    /// Whether the cause is another transaction, which will end: 55P03 (lock_not_available), 40P01
    /// (deadlock_detected), 40001 (serialization_failure).
    pub(crate) fn is_of_contention(&self) -> bool {
        [
            PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE,
            PgSqlErrorCode::ERRCODE_T_R_DEADLOCK_DETECTED,
            PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
        ]
        .contains(&self.code)
    }

    /// Whether a row could not be deleted because another refers to it.
    pub(crate) fn is_of_a_reference(&self) -> bool {
        [
            PgSqlErrorCode::ERRCODE_FOREIGN_KEY_VIOLATION,
            PgSqlErrorCode::ERRCODE_RESTRICT_VIOLATION,
        ]
        .contains(&self.code)
    }

    /// Whether a block of a file, a table's or an index's, could not be read: XX001
    /// (data_corrupted), XX002 (index_corrupted), 58030 (io_error), 58P01 (undefined_file: one of
    /// its segments).
    pub(crate) fn may_be_of_a_block(&self) -> bool {
        [
            PgSqlErrorCode::ERRCODE_DATA_CORRUPTED,
            PgSqlErrorCode::ERRCODE_INDEX_CORRUPTED,
            PgSqlErrorCode::ERRCODE_IO_ERROR,
            PgSqlErrorCode::ERRCODE_UNDEFINED_FILE,
        ]
        .contains(&self.code)
    }

    /// Message and detail in one line: the detail is a sentence of its own.
    pub(crate) fn text(&self) -> String {
        match &self.detail {
            Some(detail) => format!("{}. {detail}", self.message),
            None => self.message.clone(),
        }
    }
}

impl From<pgrx::spi::Error> for Error {
    fn from(error: pgrx::spi::Error) -> Self {
        Self::new(
            PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
            format!("query failed: {error}"),
        )
    }
}

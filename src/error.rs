//! One error type for what a user can cause: SQLSTATE, message, DETAIL, HINT.

use crate::pg::{catalog, encoding, txn::Failure};
use crate::policy::LabelError;
use pgrx::prelude::*;
use pgrx::{PgLogLevel, PgSqlErrorCode, pg_sys::panic::ErrorReport};

/// An error that a user can cause. PostgreSQL's message style: the message in
/// lower case without a full stop, DETAIL and HINT as sentences.
#[derive(Debug)]
pub(crate) struct TtlError {
    code: PgSqlErrorCode,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
}

/// What the functions behind the SQL surface return.
pub(crate) type Result<T> = std::result::Result<T, TtlError>;

impl TtlError {
    pub(crate) fn new(code: PgSqlErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            detail: None,
            hint: None,
        }
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
        Self::new(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "ttl_ext must be loaded via \"shared_preload_libraries\"",
        )
        .detail("The library installs hooks that every session needs.")
        .hint("Add ttl_ext to \"shared_preload_libraries\" in postgresql.conf and restart the server.")
    }

    /// 55000: the table has no TTL.
    pub(crate) fn no_policy(relid: pg_sys::Oid) -> Self {
        let table = catalog::qualified_name(relid);
        Self::new(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("table {table} has no time to live"),
        )
        .hint(format!(
            "Turn it on with SELECT ttl.enable({}, ...).",
            catalog::quote_literal(&table)
        ))
    }

    /// 22023: a label or a setting that the rules refuse; 54000 if there is too much of it.
    pub(crate) fn invalid_label(error: &LabelError) -> Self {
        if error.is_limit() {
            return Self::new(
                PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
                "time to live label is too large",
            )
            .detail(sentence(error))
            .hint("Make TTL indexes that are not needed ordinary ones: SELECT ttl.expire_index('...', NULL).");
        }
        Self::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, "invalid time to live label")
            .detail(format!("{error}."))
            .hint("A label looks like {\"default_ttl\": 3600, \"ts_column\": \"_ts\", \"ttl_column\": \"ttl\"}.")
    }

    /// 22023: C2, the range of a table's default.
    pub(crate) fn invalid_default_ttl(value: i64) -> Self {
        Self::new(
            PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            format!("invalid default time to live: {value}"),
        )
        .detail("The default is a number of seconds from 1 to 2147483647, or -1 for TTL without a default, or NULL for off.")
        .hint("To turn TTL off, use ttl.disable(); to keep single rows for ever, set their override to -1.")
    }

    /// 01000, to be raised with [`Self::warn`]: a table that deletion passes over
    /// until `ttl.resume` is called.
    pub(crate) fn restored(relid: pg_sys::Oid) -> Self {
        let table = catalog::qualified_name(relid);
        Self::new(
            PgSqlErrorCode::ERRCODE_WARNING,
            format!("expired rows of table {table} are not deleted"),
        )
        .detail("Its time to live was restored from a dump, or labelled by hand.")
        .hint(format!(
            "SELECT ttl.resume({}) starts deletion.",
            catalog::quote_literal(&table)
        ))
    }

    /// 00000, to be raised with [`Self::notice`]: rows have come with their times.
    pub(crate) fn rows_restored(relid: pg_sys::Oid) -> Self {
        let table = catalog::qualified_name(relid);
        Self::new(
            PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
            format!("deletion of expired rows of table {table} waits"),
        )
        .detail("Rows are being restored, with the times of their last modification.")
        .hint(format!(
            "SELECT ttl.resume({}) starts it.",
            catalog::quote_literal(&table)
        ))
    }

    /// 55000: expired rows would have to be deleted, which waits for `ttl.resume`.
    pub(crate) fn restored_rows_in_the_way(relid: pg_sys::Oid) -> Self {
        let table = catalog::qualified_name(relid);
        Self::new(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("expired rows of table {table} would live again"),
        )
        .detail("Its time to live was restored from a dump, or labelled by hand, so none of its rows are deleted.")
        .hint(format!(
            "Call SELECT ttl.resume({}) first, by which they are deleted; or let them live again with revive_expired => true.",
            catalog::quote_literal(&table)
        ))
    }

    /// 55000: a trigger or rule of the table keeps rows that had to go.
    pub(crate) fn expired_rows_kept(relid: pg_sys::Oid) -> Self {
        Self::new(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!(
                "expired rows of table {} could not be deleted",
                catalog::qualified_name(relid)
            ),
        )
        .detail("A trigger or rule on the table keeps them.")
    }

    /// 00000, to be raised with [`Self::notice`]: rules that have ended.
    pub(crate) fn no_longer_ttl_indexes(relid: pg_sys::Oid, indexes: &[String]) -> Self {
        let names: Vec<String> = indexes
            .iter()
            .map(|name| catalog::quote_identifier(name))
            .collect();
        let table = catalog::qualified_name(relid);
        Self::new(
            PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
            format!(
                "indexes of table {table} are no longer TTL indexes: {}",
                names.join(", ")
            ),
        )
    }

    /// 55000: rows of the table do not count from their last modification.
    pub(crate) fn no_clock(relid: pg_sys::Oid) -> Self {
        let table = catalog::qualified_name(relid);
        Self::new(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("table {table} has no default time to live"),
        )
        .detail("Its rows expire by TTL indexes only: it has no column with the time of their last modification.")
        .hint(format!(
            "SELECT ttl.enable({}, ...) adds one.",
            catalog::quote_literal(&table)
        ))
    }

    /// The hint, if there is none yet.
    pub(crate) fn or_hint(mut self, hint: &str) -> Self {
        self.hint.get_or_insert_with(|| hint.to_owned());
        self
    }

    /// Code, message and detail.
    pub(crate) fn into_parts(self) -> (PgSqlErrorCode, String, Option<String>) {
        (self.code, self.message, self.detail)
    }

    /// Raises the error; does not return.
    #[track_caller]
    pub(crate) fn raise(self) -> ! {
        self.report(PgLogLevel::ERROR);
        unreachable!("an ERROR does not return")
    }

    /// Sends it as a WARNING, and goes on.
    #[track_caller]
    pub(crate) fn warn(self) {
        self.report(PgLogLevel::WARNING);
    }

    /// Sends it as a NOTICE, and goes on.
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

/// What is wrong with a label, as a DETAIL.
fn sentence(error: &LabelError) -> String {
    let text = format!("{error}.");
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

impl From<Failure> for TtlError {
    fn from(failure: Failure) -> Self {
        let error = Self::new(failure.code, failure.message);
        match failure.detail {
            Some(detail) => error.detail(detail),
            None => error,
        }
    }
}

impl From<pgrx::spi::Error> for TtlError {
    fn from(error: pgrx::spi::Error) -> Self {
        Self::new(
            PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
            format!("query failed: {error}"),
        )
    }
}

/// The value, or the error raised.
pub(crate) fn or_raise<T>(result: Result<T>) -> T {
    result.unwrap_or_else(|error| error.raise())
}

//! Transactions of a background worker, and subtransactions of a session.

use super::gate::Identity;
use super::owner_session;
use crate::error::Error;
use crate::pg::server::timeout::TimeLimit;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, PgTryBuilder};
use std::panic::AssertUnwindSafe;
use std::time::Duration;

/// Runs `work` in a subtransaction, which is rolled back if it fails: by an error, which is
/// returned, or by its own `Err`. For a session's transaction, like a PL/pgSQL block with an
/// EXCEPTION clause.
pub(crate) fn nested<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    // SAFETY: within a transaction; context and owner are those from before, as
    // the functions for internal subtransactions leave others.
    unsafe {
        let context = pg_sys::CurrentMemoryContext;
        let owner = pg_sys::CurrentResourceOwner;
        pg_sys::BeginInternalSubTransaction(core::ptr::null());
        pg_sys::MemoryContextSwitchTo(context);
        let result = PgTryBuilder::new(AssertUnwindSafe(work))
            .catch_others(|error| Err(Error::of(error)))
            .catch_rust_panic(|error| Err(Error::of(error)))
            .execute();
        pg_sys::MemoryContextSwitchTo(context);
        if result.is_ok() {
            pg_sys::ReleaseCurrentSubTransaction();
        } else {
            pg_sys::RollbackAndReleaseCurrentSubTransaction();
        }
        pg_sys::MemoryContextSwitchTo(context);
        pg_sys::CurrentResourceOwner = owner;
        result
    }
}

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

/// Runs `work` in a transaction of its own and commits, within a time limit. After an error, of
/// `work` or of the commit, the transaction is rolled back and the error returned; likewise for
/// an `Err` of `work`.
///
/// In a process of a table's owner, what [`owner_session`] requires of each transaction holds until
/// after its end, so for deferred triggers at commit, too.
pub(crate) fn run_within<T>(
    limit: Duration,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    let _limit = TimeLimit::start(limit);
    transaction(true, work)
}

/// As [`run_within`], without a time limit; `work` may end transactions and begin others. Without `restricts`, [`owner_session`] requires nothing of the transaction.
pub(super) fn transaction<T>(
    restricts: bool,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    owner_session::before_transaction();
    let identity = Identity::current();
    let attempt = AssertUnwindSafe(|| {
        // SAFETY: a background worker that is connected and in no transaction.
        // The transaction's clock would stand still without the first call.
        unsafe {
            pg_sys::SetCurrentStatementStartTimestamp();
            pg_sys::StartTransactionCommand();
            if restricts {
                owner_session::begin_transaction();
            }
            pg_sys::AcceptInvalidationMessages();
            pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        }
        let result = work()?;
        // SAFETY: the snapshot pushed above, unless `work` has ended it with the transaction begun above; a
        // transaction is open.
        unsafe {
            if pg_sys::ActiveSnapshotSet() {
                pg_sys::PopActiveSnapshot();
            }
            pg_sys::CommitTransactionCommand();
        }
        Ok(result)
    });
    let result = PgTryBuilder::new(attempt)
        .catch_others(|error| Err(Error::of(error)))
        .catch_rust_panic(|error| Err(Error::of(error)))
        .execute();
    if result.is_err() {
        // SAFETY: valid in any state; also restores the identity from before the transaction. Locks for the
        // session end as well.
        unsafe { pg_sys::AbortCurrentTransaction() };
    }
    identity.restore();
    result
}

//! Transactions of a background worker, and subtransactions of a session.

use super::gate::Identity;
use super::owner_session;
use crate::error::Error;
use crate::pg::server::timeout::{OutsideLimit, TimeLimit};
use pgrx::PgTryBuilder;
use pgrx::prelude::*;
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

/// Runs `work` in a transaction of its own and commits, within a time limit. After an error, of
/// `work` or of the commit, the transaction is rolled back and the error returned; likewise for
/// an `Err` of `work`.
///
/// In a process of a table's owner, what [`owner_session`] requires of each transaction holds until
/// after its end, so for deferred triggers at commit, too; and what code of users has left in the session is discarded.
pub(crate) fn run_within<T>(
    limit: Duration,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    let limited = TimeLimit::start(limit);
    let result = transaction(true, work);
    drop(limited);
    clean();
    result
}

/// For how long a session is cleaned: another one may have locked what is to be dropped.
const CLEANING: Duration = Duration::from_secs(2);

/// After a transaction of a background process: discards what code of users has left in the session.
pub(super) fn clean() {
    if !owner_session::has_run_code() {
        return;
    }
    let _limit = OutsideLimit::start(CLEANING);
    let discard = || {
        owner_session::discard();
        Ok(())
    };
    if let Err(failure) = transaction(true, discard) {
        // The next transaction would meet what this one has left: better to end the process.
        failure.raise_fatal();
    }
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

//! Utility statements of a background worker at top level: those that commit in between, as
//! CREATE INDEX CONCURRENTLY.

use super::encoding;
use crate::error::Error;
use pgrx::PgTryBuilder;
use pgrx::pg_sys::{self, NodeTag, ProcessUtilityContext};
use std::panic::AssertUnwindSafe;

/// Runs `before` and then the statement as this role, which is the session's user meanwhile. The
/// worker itself is connected as the bootstrap superuser, and in no transaction. After an error
/// nothing is left but what the statement has committed itself.
///
/// What PostgreSQL runs of a table's owner in such statements (expressions and predicates of
/// indexes) it restricts itself; the role may do no more than the owner.
pub(crate) fn run_as(
    role: pg_sys::Oid,
    before: impl FnOnce() -> Result<(), Error>,
    text: &str,
) -> Result<(), Error> {
    let attempt = AssertUnwindSafe(|| {
        // SAFETY: a background worker in no transaction; undone below.
        unsafe {
            pg_sys::SetCurrentStatementStartTimestamp();
            pg_sys::StartTransactionCommand();
            pg_sys::AcceptInvalidationMessages();
            let is_superuser = pg_sys::superuser_arg(role);
            pg_sys::SetSessionAuthorization(role, is_superuser);
            pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        }
        before()?;
        run(text);
        // SAFETY: the statement may have ended the snapshot with a transaction of its own.
        unsafe {
            if pg_sys::ActiveSnapshotSet() {
                pg_sys::PopActiveSnapshot();
            }
            pg_sys::CommitTransactionCommand();
        }
        Ok(())
    });
    let result = PgTryBuilder::new(attempt)
        .catch_others(|error| Err(Error::of(error)))
        .catch_rust_panic(|error| Err(Error::of(error)))
        .execute();
    // SAFETY: valid in any state; locks for the session end as well. Outside a transaction the
    // security context is the plain one.
    unsafe {
        if result.is_err() {
            pg_sys::AbortCurrentTransaction();
        }
        pg_sys::SetSessionAuthorization(pg_sys::Oid::from(pg_sys::BOOTSTRAP_SUPERUSERID), true);
    }
    result
}

fn run(text: &str) {
    let text = encoding::query(text);
    // SAFETY: the statement's tree and what it allocates outlive its transactions, in a context
    // that lives as long as the process: it runs a few statements. The text outlives the call.
    unsafe {
        pg_sys::MemoryContextSwitchTo(pg_sys::TopMemoryContext);
        let list = pg_sys::raw_parser(text.as_ptr(), pg_sys::RawParseMode::RAW_PARSE_DEFAULT);
        let raw = (*(*list).elements).ptr_value.cast::<pg_sys::RawStmt>();
        let planned = pg_sys::palloc0(size_of::<pg_sys::PlannedStmt>());
        let planned = planned.cast::<pg_sys::PlannedStmt>();
        (*planned).type_ = NodeTag::T_PlannedStmt;
        (*planned).commandType = pg_sys::CmdType::CMD_UTILITY;
        (*planned).canSetTag = true;
        (*planned).utilityStmt = (*raw).stmt;
        (*planned).stmt_location = (*raw).stmt_location;
        (*planned).stmt_len = (*raw).stmt_len;
        pg_sys::ProcessUtility(
            planned,
            text.as_ptr(),
            false,
            ProcessUtilityContext::PROCESS_UTILITY_TOPLEVEL,
            core::ptr::null_mut(),
            core::ptr::null_mut(),
            pg_sys::CreateDestReceiver(pg_sys::CommandDest::DestNone),
            core::ptr::null_mut(),
        );
    }
}

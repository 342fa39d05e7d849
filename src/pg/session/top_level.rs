//! Utility statements of a background worker at top level: those that commit in between, as
//! CREATE INDEX CONCURRENTLY.

use super::txn;
use crate::error::Error;
use crate::pg::abi::encoding;
use pgrx::pg_sys::{self, NodeTag, ProcessUtilityContext};

/// Runs `before` and then the statement, in a process that belongs to an owner
/// ([`super::owner_session`]) and is in no transaction. After an error nothing is left but what the
/// statement has committed itself.
///
/// A statement that is one transaction has what [`super::owner_session`] requires of each; one that
/// commits in between, like CREATE INDEX CONCURRENTLY, cannot: PostgreSQL itself restricts what it
/// runs of an owner there, since superusers build indexes on tables of others, too. The session is cleaned after either.
pub(crate) fn run(
    is_one_transaction: bool,
    before: impl FnOnce() -> Result<(), Error>,
    text: &str,
) -> Result<(), Error> {
    let result = txn::transaction(is_one_transaction, || {
        before()?;
        execute(text);
        Ok(())
    });
    txn::clean();
    result
}

fn execute(text: &str) {
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

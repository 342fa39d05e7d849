//! The ExecutorEnd hook: notes which tables with TTL a statement has written to.

use super::{externs, lists};
use crate::reaper::writes;
use crate::store::{TablePolicy, cache};
use pgrx::pg_sys;
use pgrx::prelude::*;

static mut PREVIOUS: pg_sys::ExecutorEnd_hook_type = None;

/// Installs the hook; once, at load.
pub(crate) fn init() {
    // SAFETY: single-threaded, in the postmaster, before any query.
    unsafe {
        PREVIOUS = pg_sys::ExecutorEnd_hook;
        pg_sys::ExecutorEnd_hook = Some(trampoline);
    }
}

/// Unguarded, with nothing to drop (`docs/decisions/0004-unguarded-trampolines.md`).
/// A query that writes nothing costs two comparisons.
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]
unsafe extern "C-unwind" fn trampoline(query: *mut pg_sys::QueryDesc) {
    // SAFETY: PostgreSQL's arguments are passed on; PREVIOUS is set once.
    unsafe {
        let plan = (*query).plannedstmt;
        if !plan.is_null() && !(*plan).resultRelations.is_null() {
            note_writes(plan);
        }
        match PREVIOUS {
            Some(previous) => previous(query),
            None => externs::standard_ExecutorEnd(query),
        }
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn note_writes(plan: *mut pg_sys::PlannedStmt) {
    // SAFETY: a plan whose list of result relations holds indexes into its range table.
    unsafe {
        if (*plan).commandType == pg_sys::CmdType::CMD_DELETE && !(*plan).hasModifyingCTE {
            return;
        }
        let entries = (*plan).rtable;
        for index in lists::ints((*plan).resultRelations) {
            let entry = lists::nth::<pg_sys::RangeTblEntry>(entries, index - 1);
            if let Some(entry) = entry.and_then(|entry| entry.as_ref())
                && let Some(policy) = cache::policy(entry.relid).filter(TablePolicy::hides)
            {
                writes::note(&policy);
            }
        }
    }
}

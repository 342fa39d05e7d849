//! The executor's hooks. At the start, a query's time is noted, by which it goes on whenever
//! it runs, and statements are spared a trigger that they do not need; at the end, it is
//! noted which tables with TTL a statement has written to.

use crate::clock::execution;
use crate::keys::restoring;
use crate::keys::skip_trigger::{self, Spared};
use crate::pg::{externs, lists};
use crate::store::{cache, written};
use crate::visibility::row_locks;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::c_int;

static mut PREVIOUS_START: pg_sys::ExecutorStart_hook_type = None;
static mut PREVIOUS_RUN: pg_sys::ExecutorRun_hook_type = None;
static mut PREVIOUS_FINISH: pg_sys::ExecutorFinish_hook_type = None;
static mut PREVIOUS_END: pg_sys::ExecutorEnd_hook_type = None;

/// Installs the hooks; once, at load.
pub(super) fn init() {
    // SAFETY: single-threaded, in the postmaster, before any query.
    unsafe {
        PREVIOUS_START = pg_sys::ExecutorStart_hook;
        pg_sys::ExecutorStart_hook = Some(at_start);
        PREVIOUS_RUN = pg_sys::ExecutorRun_hook;
        pg_sys::ExecutorRun_hook = Some(at_run);
        PREVIOUS_FINISH = pg_sys::ExecutorFinish_hook;
        pg_sys::ExecutorFinish_hook = Some(at_finish);
        PREVIOUS_END = pg_sys::ExecutorEnd_hook;
        pg_sys::ExecutorEnd_hook = Some(at_end);
    }
}

/// Unguarded, with nothing to drop (`docs/decisions/0004-unguarded-trampolines.md`).
/// An error ends what has begun through the callbacks in `transaction.rs`.
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]
unsafe extern "C-unwind" fn at_start(query: *mut pg_sys::QueryDesc, eflags: c_int) {
    // SAFETY: PostgreSQL's arguments are passed on; PREVIOUS_START is set once.
    unsafe {
        let outer = execution::begin(query);
        match PREVIOUS_START {
            Some(previous) => previous(query, eflags),
            None => externs::standard_ExecutorStart(query, eflags),
        }
        execution::keep(query);
        let plan = (*query).plannedstmt;
        let explained = eflags.cast_unsigned() & pg_sys::EXEC_FLAG_EXPLAIN_ONLY != 0;
        if !plan.is_null() && !(*plan).resultRelations.is_null() && !explained {
            let spared = skip_trigger::may_be_spared(plan);
            if spared != Spared::Nothing {
                spare((*query).estate, spared);
            }
        }
        if !plan.is_null() && !(*plan).rowMarks.is_null() && !explained {
            note_locks(plan);
        }
        let inserts = |plan: *mut pg_sys::PlannedStmt| {
            !plan.is_null() && (*plan).commandType == pg_sys::CmdType::CMD_INSERT
        };
        if !pg_sys::row_security && !explained && inserts(plan) {
            note_restore(plan);
        }
        outer.resume();
    }
}

/// As [`at_start`]. PostgreSQL 18 passes one argument less.
macro_rules! at_run {
    ($($argument:ident: $type:ty),*) => {
        #[allow(
            ffi_unwind_calls,
            reason = "an error that unwinds from C is PostgreSQL's own longjmp"
        )]
        unsafe extern "C-unwind" fn at_run(query: *mut pg_sys::QueryDesc, $($argument: $type),*) {
            // SAFETY: PostgreSQL's arguments are passed on; PREVIOUS_RUN is set once.
            unsafe {
                let outer = execution::go_on(query);
                match PREVIOUS_RUN {
                    Some(previous) => previous(query, $($argument),*),
                    None => externs::standard_ExecutorRun(query, $($argument),*),
                }
                outer.resume();
            }
        }
    };
}
#[cfg(not(feature = "pg18"))]
at_run!(direction: pg_sys::ScanDirection::Type, count: u64, execute_once: bool);
#[cfg(feature = "pg18")]
at_run!(direction: pg_sys::ScanDirection::Type, count: u64);

/// As [`at_start`]; data-modifying WITH runs to its end here.
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]
unsafe extern "C-unwind" fn at_finish(query: *mut pg_sys::QueryDesc) {
    // SAFETY: PostgreSQL's arguments are passed on; PREVIOUS_FINISH is set once.
    unsafe {
        let outer = execution::go_on(query);
        match PREVIOUS_FINISH {
            Some(previous) => previous(query),
            None => externs::standard_ExecutorFinish(query),
        }
        outer.resume();
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn note_restore(plan: *mut pg_sys::PlannedStmt) {
    // SAFETY: the statement has just been started.
    unsafe { restoring::before_insert(plan) }
}

#[pg_guard]
unsafe extern "C-unwind" fn note_locks(plan: *mut pg_sys::PlannedStmt) {
    // SAFETY: the statement has just been started.
    unsafe { row_locks::note(plan) }
}

#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
unsafe extern "C-unwind" fn spare(estate: *mut pg_sys::EState, spared: Spared) {
    // SAFETY: the statement has just been started.
    unsafe { skip_trigger::spare(estate, spared) }
}

/// Unguarded, with nothing to drop (`docs/decisions/0004-unguarded-trampolines.md`).
/// A query that writes nothing costs two comparisons.
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]
unsafe extern "C-unwind" fn at_end(query: *mut pg_sys::QueryDesc) {
    // SAFETY: PostgreSQL's arguments are passed on; PREVIOUS_END is set once.
    unsafe {
        let plan = (*query).plannedstmt;
        if !plan.is_null() && !(*plan).resultRelations.is_null() {
            note_writes(plan);
        }
        match PREVIOUS_END {
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
                && let Some(policy) = cache::policy(entry.relid).filter(|policy| policy.expires())
            {
                written::note(&policy);
            }
        }
    }
}

//! The planner hook: sets `_ts` in INSERT and UPDATE, and records which statement is planned.
//!
//! A BEFORE trigger instead would make writes take 1.3 to 1.55 times as long and disable COPY's
//! multi-insert (`docs/decisions/0003-no-stamping-trigger.md`).

use crate::deletion::{reach, replanned};
use crate::pg::abi::externs;
use crate::pg::exec::guarded_planning;
use crate::pg::plan::planner_input::QueryTree;
use crate::pg::session::gate;
use crate::pg::session::scoped::Scope;
use crate::stamp;
#[cfg(since19)]
use crate::visibility::conflict_select;
use crate::visibility::{copy_to, planned_statement};
use core::ffi::{CStr, c_char, c_int};
use pgrx::pg_sys;
use pgrx::prelude::*;

static mut PREVIOUS: pg_sys::planner_hook_type = None;

/// Installs the hook; once, at load.
pub(super) fn init() {
    // SAFETY: single-threaded, in the postmaster, before any query.
    unsafe {
        PREVIOUS = pg_sys::planner_hook;
        pg_sys::planner_hook = Some(trampoline);
    }
}

/// Unguarded, and nothing needs dropping: errors from below keep their CONTEXT, position and names
/// (`docs/decisions/0004-unguarded-trampolines.md`).
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]
unsafe extern "C-unwind" fn trampoline(
    parse: *mut pg_sys::Query,
    query_string: *const c_char,
    cursor_options: c_int,
    bound_params: pg_sys::ParamListInfo,
    #[cfg(since19)] explain: *mut pg_sys::ExplainState,
) -> *mut pg_sys::PlannedStmt {
    // SAFETY: PostgreSQL's arguments are passed on; PREVIOUS is set once.
    unsafe {
        let query = QueryTree::new(parse);
        // Planning computes constants, for which it calls functions.
        let acting = gate::enter_query();
        // Most statements are neither a foreign key's nor a write, and need no guard.
        let (outer, guarded) = if planned_statement::may_be_referential() || stamp::may_write(query)
        {
            inspect(query, query_string)
        } else {
            (planned_statement::enter_ordinary(query, query_string), None)
        };
        let copied = copy_to::before_planning(query);
        let plan_it = PREVIOUS.unwrap_or(externs::standard_planner);
        let plan = plan_it(
            parse,
            query_string,
            cursor_options,
            bound_params,
            #[cfg(since19)]
            explain,
        );
        if let Some(copied) = copied {
            copy_to::after_planning(copied);
        }
        if let Some(guarded) = guarded {
            guarded_planning::leave(guarded);
        }
        gate::leave_query(acting);
        if planned_statement::leave(outer) {
            (*plan).dependsOnRole = true;
        }
        plan
    }
}

#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
unsafe extern "C-unwind" fn inspect(
    query: QueryTree<'_>,
    text: *const c_char,
) -> (Scope, Option<Scope>) {
    if externs::InNoForceRLSOperation() {
        // SAFETY: null, or the query's text, valid until the hook returns.
        replanned::before_planning((!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }));
    }
    // SAFETY: PostgreSQL passes a query and its text, valid until the hook returns.
    let outer = unsafe { planned_statement::enter(query, text) };
    let strangers = reach::before_planning(query);
    stamp::stamp_query(query);
    #[cfg(since19)]
    conflict_select::hide_expired(query);
    (outer, strangers.map(guarded_planning::enter))
}

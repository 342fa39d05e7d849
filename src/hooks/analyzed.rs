//! The hook after the analysis of a query: those of the extension's that PostgreSQL keeps, and analyzes again by their names, are to
//! have the tables that were looked at; that of a COPY the table copied; and PostgreSQL's own for foreign keys such as have one.

use crate::deletion::reach;
use crate::pg::exec::{kept_query, query};
use crate::pg::plan::planner_input::QueryTree;
use crate::visibility::copy_to;
use core::ffi::CStr;
use pgrx::pg_sys;

static mut PREVIOUS: pg_sys::post_parse_analyze_hook_type = None;

/// Installs the hook; once, at load.
pub(super) fn init() {
    // SAFETY: single-threaded, in the postmaster, before any query.
    unsafe {
        PREVIOUS = pg_sys::post_parse_analyze_hook;
        pg_sys::post_parse_analyze_hook = Some(trampoline);
    }
}

/// Unguarded, and nothing needs dropping (`docs/decisions/0004-unguarded-trampolines.md`).
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]
unsafe extern "C-unwind" fn trampoline(
    state: *mut pg_sys::ParseState,
    query: *mut pg_sys::Query,
    #[cfg(not(since19))] jumble: *mut pg_sys::JumbleState,
    #[cfg(since19)] jumble: *const pg_sys::JumbleState,
) {
    // SAFETY: PostgreSQL's arguments are passed on; PREVIOUS is set once.
    unsafe {
        let text = (*state).p_sourcetext;
        let is_own = kept_query::is_any() && kept_query::check(state, query) || query::is_own(text);
        if copy_to::is_any() {
            copy_to::check_analyzed(text, QueryTree::new(query));
        }
        if !is_own && !text.is_null() && reach::checks_analyzed() {
            reach::check_analyzed(CStr::from_ptr(text), QueryTree::new(query));
        }
        if let Some(previous) = PREVIOUS {
            previous(state, query, jumble);
        }
    }
}

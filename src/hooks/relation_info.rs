//! `get_relation_info_hook`: the planner calls it for every relation of a query, after rewriting.

use crate::pg::planned_table::PlannedTable;
use crate::store::cache;
use crate::visibility::relation_info;
use pgrx::pg_sys::{self, PlannerInfo, RelOptInfo};
use pgrx::prelude::*;

static mut PREVIOUS: pg_sys::get_relation_info_hook_type = None;

/// Installs the hook; once, at load.
pub(super) fn init() {
    // SAFETY: single-threaded, in the postmaster, before any query.
    unsafe {
        PREVIOUS = pg_sys::get_relation_info_hook;
        pg_sys::get_relation_info_hook = Some(trampoline);
    }
}

/// Unguarded, and nothing needs dropping: errors of other hooks pass unchanged.
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from a C hook is PostgreSQL's own longjmp"
)]
unsafe extern "C-unwind" fn trampoline(
    root: *mut PlannerInfo,
    relid: pg_sys::Oid,
    inhparent: bool,
    rel: *mut RelOptInfo,
) {
    // SAFETY: PostgreSQL's arguments are passed on; PREVIOUS is set once.
    unsafe {
        if let Some(previous) = PREVIOUS {
            previous(root, relid, inhparent, rel);
        }
        // Check first, as the guard costs more: most relations have no TTL.
        if !cache::is_known_to_have_none(relid) {
            restrict(PlannedTable::new(root, rel), relid);
        }
    }
}

#[pg_guard]
extern "C-unwind" fn restrict(table: PlannedTable<'_>, relid: pg_sys::Oid) {
    relation_info::hide_expired(table, relid);
}

//! `get_relation_info_hook`: the planner calls it for every relation of a query, after rewriting.
//! From 19 on `build_simple_rel_hook` has its place: the relation's indexes are known, and what it
//! inherits from its parent is not yet applied.

use crate::pg::plan::planned_table::PlannedTable;
use crate::store::cache;
use crate::visibility::restrict_relation;
use pgrx::pg_sys::{self, PlannerInfo, RelOptInfo};
use pgrx::prelude::*;

#[cfg(since19)]
use pg_sys::{build_simple_rel_hook as HOOK, build_simple_rel_hook_type as Hook};
#[cfg(not(since19))]
use pg_sys::{get_relation_info_hook as HOOK, get_relation_info_hook_type as Hook};

static mut PREVIOUS: Hook = None;

/// Installs the hook; once, at load.
pub(super) fn init() {
    // SAFETY: single-threaded, in the postmaster, before any query.
    unsafe {
        PREVIOUS = HOOK;
        HOOK = Some(trampoline);
    }
}

/// Unguarded, and nothing needs dropping: errors of other hooks pass unchanged.
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from a C hook is PostgreSQL's own longjmp"
)]
#[cfg(not(since19))]
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

/// As above; 19 calls it for what is no relation of the catalog, too.
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from a C hook is PostgreSQL's own longjmp"
)]
#[cfg(since19)]
unsafe extern "C-unwind" fn trampoline(
    root: *mut PlannerInfo,
    rel: *mut RelOptInfo,
    entry: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: PostgreSQL's arguments are passed on; PREVIOUS is set once.
    unsafe {
        if let Some(previous) = PREVIOUS {
            previous(root, rel, entry);
        }
        let (kind, relid) = ((*entry).rtekind, (*entry).relid);
        if kind == pg_sys::RTEKind::RTE_RELATION && !cache::is_known_to_have_none(relid) {
            restrict(PlannedTable::new(root, rel), relid);
        }
    }
}

#[pg_guard]
extern "C-unwind" fn restrict(table: PlannedTable<'_>, relid: pg_sys::Oid) {
    restrict_relation::hide_expired(table, relid);
}

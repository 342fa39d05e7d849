//! Deletes a row at once, with everything that this sets off.
//!
//! Triggers run as the user of the statement, not as the table's owner, whose functions would
//! run with this session's `search_path`. Actions of foreign keys run as the owners of the
//! referencing tables, as always. Neither privileges nor policies for rows are checked: the user
//! does not delete. Rules do not apply, as in logical replication. Also in a session that
//! replays others' changes the deletion is this server's own: foreign keys are enforced.
//!
//! Unguarded, with nothing to drop: PostgreSQL's errors pass through.

#![allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]

use super::removal::{self, Removal};
use super::{no_action_checks, strangers};
use crate::pg::gate::Bounded;
use crate::pg::{externs, relation, session, unguarded};
use pgrx::pg_sys::{self, ItemPointerData, ResultRelInfo};
use pgrx::prelude::*;
use std::ffi::c_int;

/// What the triggers need of the executor.
#[derive(Clone, Copy)]
struct Execution {
    estate: *mut pg_sys::EState,
    target: *mut ResultRelInfo,
    /// For rows that are changed meanwhile; a locked one cannot be.
    recheck: *mut pg_sys::EPQState,
    /// For triggers with transition tables; null if there are none.
    capture: *mut pg_sys::TransitionCaptureState,
    /// The nest level of settings to undo.
    settings: Option<c_int>,
    /// What restricts other people's code.
    bounds: Option<Bounded>,
}

/// Deletes the row with this TID, which the transaction has locked. With `for_new_row`, foreign
/// keys with NO ACTION are checked when the user's statement ends ([`no_action_checks`]).
///
/// # Safety
/// `table` is open and locked.
pub(super) unsafe fn delete(
    table: pg_sys::Relation,
    tid: &mut ItemPointerData,
    for_new_row: bool,
) -> Removal {
    // SAFETY: as required of the caller. An error ends the subtransaction, with which
    // what is queued goes, and the memory.
    unsafe {
        unguarded::AfterTriggerBeginQuery();
        let Execution {
            estate,
            target,
            recheck,
            capture,
            settings,
            bounds,
        } = begin(table, for_new_row);
        unguarded::ExecBSDeleteTriggers(estate, target);
        let kept = (*(*target).ri_TrigDesc).trig_delete_before_row
            && !unguarded::before_row_delete_triggers(estate, recheck, target, tid);
        let removal = if kept {
            Removal::Kept
        } else {
            // By the command ID from before the triggers: one of them may have changed the row
            // itself.
            removal::delete_directly(table, tid, (*estate).es_output_cid)
        };
        if removal == Removal::Gone {
            unguarded::ExecARDeleteTriggers(
                estate,
                target,
                tid,
                core::ptr::null_mut(),
                capture,
                false,
            );
        }
        unguarded::ExecASDeleteTriggers(estate, target, capture);
        unguarded::AfterTriggerEndQuery(estate);
        if removal == Removal::Gone && for_new_row {
            no_action_checks::queue(table, tid);
        }
        end(estate, recheck, settings, bounds);
        removal
    }
}

/// # Safety
/// `table` is open and locked, and has triggers.
#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
unsafe extern "C-unwind" fn begin(table: pg_sys::Relation, for_new_row: bool) -> Execution {
    // SAFETY: as required of the caller.
    let bounds = strangers::keep_in_bounds(unsafe { (*table).rd_id });
    let settings = session::begin_as_origin();
    // SAFETY: as required of the caller; all is allocated with the estate.
    unsafe {
        let estate = pg_sys::CreateExecutorState();
        let former = pg_sys::MemoryContextSwitchTo((*estate).es_query_cxt);
        (*estate).es_snapshot = externs::GetActiveSnapshot();
        (*estate).es_output_cid = externs::GetCurrentCommandId(true);
        let target = relation::target(table);
        let triggers = (*target).ri_TrigDesc;
        if for_new_row {
            no_action_checks::take_out(&mut *triggers);
        }
        let delete = pg_sys::CmdType::CMD_DELETE;
        let capture = pg_sys::MakeTransitionCaptureState(triggers, (*table).rd_id, delete);
        let execution = Execution {
            estate,
            target,
            recheck: relation::recheck(estate),
            capture,
            settings,
            bounds,
        };
        pg_sys::MemoryContextSwitchTo(former);
        execution
    }
}

/// # Safety
/// `estate` and `recheck` come from [`begin`]; the triggers have fired.
#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
unsafe extern "C-unwind" fn end(
    estate: *mut pg_sys::EState,
    recheck: *mut pg_sys::EPQState,
    settings: Option<c_int>,
    bounds: Option<Bounded>,
) {
    // SAFETY: as required of the caller.
    unsafe {
        pg_sys::EvalPlanQualEnd(recheck);
        relation::free_execution(estate);
    }
    session::end_as_origin(settings);
    if let Some(bounds) = bounds {
        bounds.end();
    }
}

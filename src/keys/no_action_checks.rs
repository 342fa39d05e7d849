//! ON DELETE NO ACTION, when an expired row makes room for a new one.
//!
//! Everything else that a deletion sets off happens before the new row is written: CASCADE and
//! the like must not reach rows that will refer to the new one. Only the check of NO ACTION
//! belongs to the end of the user's statement: a new row with the old key satisfies it. So it is
//! taken out of the deletion, and queued by itself.

use crate::pg::relation;
use pgrx::pg_sys::{self, ItemPointerData, TriggerDesc};
use pgrx::prelude::*;
use std::ffi::c_char;

/// `TRIGGER_DISABLED` of trigger.h.
const DISABLED: u8 = pg_sys::TRIGGER_DISABLED;

/// Takes the checks out of a private copy of a table's triggers.
///
/// # Safety
/// The description of a table's triggers.
pub(super) unsafe fn take_out(triggers: &mut TriggerDesc) {
    // SAFETY: as required of the caller.
    unsafe { disable(triggers, |function| function == check_function()) }
}

/// `RI_FKey_noaction_del`, of foreign keys with ON DELETE NO ACTION.
fn check_function() -> pg_sys::Oid {
    pg_sys::Oid::from(pg_sys::F_RI_FKEY_NOACTION_DEL)
}

/// Disables the triggers of these functions in a private copy of a table's triggers.
///
/// # Safety
/// The description of a table's triggers.
unsafe fn disable(triggers: &mut TriggerDesc, which: impl Fn(pg_sys::Oid) -> bool) {
    for at in 0..usize::try_from(triggers.numtriggers).unwrap_or(0) {
        // SAFETY: an array of that many triggers.
        let trigger = unsafe { &mut *triggers.triggers.add(at) };
        if which(trigger.tgfoid) {
            trigger.tgenabled = DISABLED as c_char;
        }
    }
}

/// Queues the checks for the deleted row with this TID.
///
/// # Safety
/// `table` is open and locked; a statement is running whose triggers are yet to fire.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn queue(table: pg_sys::Relation, tid: *mut ItemPointerData) {
    // SAFETY: as required of the caller; what is made here is freed with the estate.
    unsafe {
        let estate = pg_sys::CreateExecutorState();
        let former = pg_sys::MemoryContextSwitchTo((*estate).es_query_cxt);
        let target = relation::target(table);
        if let Some(triggers) = (*target).ri_TrigDesc.as_mut() {
            disable(triggers, |function| function != check_function());
            let none = core::ptr::null_mut();
            pg_sys::ExecARDeleteTriggers(estate, target, tid, none, none.cast(), false);
        }
        pg_sys::MemoryContextSwitchTo(former);
        relation::free_execution(estate);
    }
}

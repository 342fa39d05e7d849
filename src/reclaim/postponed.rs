//! Foreign keys with NO ACTION, when an expired row makes room for a new one.
//!
//! All that a deletion sets off happens before the new row comes: what CASCADE and its
//! like do must not reach rows that will refer to the new one. Only the check of NO
//! ACTION is for the end of the user's statement: it is content with a new row that
//! has the old one's key. So it is taken out of the deletion, and queued by itself.

use crate::pg::{lists, relation};
use pgrx::pg_sys::{self, EState, ItemPointerData, ResultRelInfo, TriggerDesc};
use pgrx::prelude::*;
use std::cell::Cell;
use std::ffi::c_char;

/// `TRIGGER_DISABLED` of trigger.h.
const DISABLED: u8 = pg_sys::TRIGGER_DISABLED;

thread_local! {
    /// The table from which the next statement deletes such a row.
    static NEXT: Cell<Option<pg_sys::Oid>> = const { Cell::new(None) };
}

/// The next statement that starts and writes to the table is to be a deletion without
/// these checks; `None` ends it, as do the transaction's callbacks after an error.
pub(crate) fn postpone_checks(table: Option<pg_sys::Oid>) {
    NEXT.set(table);
}

/// Whether [`take_out`] is wanted.
pub(crate) fn are_wanted() -> bool {
    NEXT.get().is_some()
}

/// Takes the checks out of a statement that has just started, if it is the one.
///
/// # Safety
/// `estate` is that of the statement.
pub(crate) unsafe fn take_out(estate: *mut EState) {
    // SAFETY: as required of the caller: its private copies of the tables' triggers.
    unsafe {
        for target in lists::iter::<ResultRelInfo>((*estate).es_opened_result_relations) {
            if NEXT.get() != Some((*(*target).ri_RelationDesc).rd_id) {
                continue;
            }
            NEXT.set(None);
            if let Some(triggers) = (*target).ri_TrigDesc.as_mut() {
                disable(triggers, |function| function == check_function());
            }
        }
    }
}

/// `RI_FKey_noaction_del`, of foreign keys with ON DELETE NO ACTION.
fn check_function() -> pg_sys::Oid {
    pg_sys::Oid::from(pg_sys::F_RI_FKEY_NOACTION_DEL)
}

/// Disables the triggers of these functions in a private copy of a table's triggers.
unsafe fn disable(triggers: &mut TriggerDesc, which: impl Fn(pg_sys::Oid) -> bool) {
    for at in 0..usize::try_from(triggers.numtriggers).unwrap_or(0) {
        // SAFETY: an array of that many triggers.
        let trigger = unsafe { &mut *triggers.triggers.add(at) };
        if which(trigger.tgfoid) {
            trigger.tgenabled = DISABLED as c_char;
        }
    }
}

/// Queues the checks for the row that was deleted at this place.
///
/// # Safety
/// `table` is open and locked; a statement is running whose triggers are yet to fire.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn queue(table: pg_sys::Relation, place: *mut ItemPointerData) {
    // SAFETY: as required of the caller; what is made here is freed with the estate.
    unsafe {
        let estate = pg_sys::CreateExecutorState();
        let former = pg_sys::MemoryContextSwitchTo((*estate).es_query_cxt);
        let target = relation::palloc_slice(&[ResultRelInfo::default()]);
        pg_sys::InitResultRelInfo(target, table, 0, core::ptr::null_mut(), 0);
        if let Some(triggers) = (*target).ri_TrigDesc.as_mut() {
            disable(triggers, |function| function != check_function());
            let none = core::ptr::null_mut();
            pg_sys::ExecARDeleteTriggers(estate, target, place, none, none.cast(), false);
        }
        pg_sys::ExecResetTupleTable((*estate).es_tupleTable, false);
        pg_sys::MemoryContextSwitchTo(former);
        pg_sys::FreeExecutorState(estate);
    }
}

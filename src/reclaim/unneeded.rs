//! Where the trigger need not fire: an UPDATE that leaves the keys alone.
//!
//! A BEFORE UPDATE trigger makes PostgreSQL lock each row before it updates it, which
//! costs a third of the statement's time. It is left out of the statement's private
//! copy of the table's triggers; the catalog knows nothing of it.

use crate::pg::extension::{self, Functions};
use crate::pg::lists;
use crate::store::cache;
use pgrx::pg_sys::{self, CmdType, EState, PlannedStmt, ResultRelInfo};

/// Whether a statement may update rows: those that may not are spared the look.
///
/// # Safety
/// `plan` is a plan with result relations.
pub(crate) unsafe fn may_update(plan: *mut PlannedStmt) -> bool {
    // SAFETY: as required of the caller; a plan that writes has a ModifyTable on top.
    unsafe {
        match (*plan).commandType {
            _ if (*plan).hasModifyingCTE => true,
            CmdType::CMD_INSERT => {
                let top = (*plan).planTree.cast::<pg_sys::ModifyTable>();
                (*top).plan.type_ == pg_sys::NodeTag::T_ModifyTable
                    && (*top).onConflictAction == pg_sys::OnConflictAction::ONCONFLICT_UPDATE
            }
            CmdType::CMD_DELETE => false,
            _ => true,
        }
    }
}

/// Takes the trigger out of those updates of a statement that cannot change a key.
///
/// # Safety
/// `estate` is that of a statement that was just started.
pub(crate) unsafe fn spare_updates(estate: *mut EState) {
    let Some(functions) = extension::functions() else {
        return;
    };
    // SAFETY: as required of the caller.
    unsafe {
        for relation in lists::iter::<ResultRelInfo>((*estate).es_opened_result_relations) {
            let Some(triggers) = (*relation).ri_TrigDesc.as_mut() else {
                continue;
            };
            if triggers.trig_update_before_row
                && is_only_one(triggers, &functions, pg_sys::TRIGGER_TYPE_UPDATE)
                && !updates_a_key(relation, estate)
            {
                triggers.trig_update_before_row = false;
            }
        }
    }
}

/// Whether the extension's is the only BEFORE trigger for rows and this event.
///
/// # Safety
/// The description of a relation's triggers.
pub(super) unsafe fn is_only_one(
    triggers: &pg_sys::TriggerDesc,
    functions: &Functions,
    event: u32,
) -> bool {
    let wanted = pg_sys::TRIGGER_TYPE_ROW | pg_sys::TRIGGER_TYPE_BEFORE | event;
    let count = usize::try_from(triggers.numtriggers).unwrap_or(0);
    let mut found = false;
    for at in 0..count {
        // SAFETY: as required of the caller: an array of that many triggers.
        let trigger = unsafe { &*triggers.triggers.add(at) };
        if u32::from(trigger.tgtype.cast_unsigned()) & wanted != wanted {
            continue;
        }
        if trigger.tgfoid != functions.free_expired_keys {
            return false;
        }
        found = true;
    }
    found
}

/// Whether the statement assigns to a column on which a key depends.
unsafe fn updates_a_key(relation: *mut ResultRelInfo, estate: *mut EState) -> bool {
    // SAFETY: a result relation of the statement.
    unsafe {
        let relid = (*(*relation).ri_RelationDesc).rd_id;
        let Some(policy) = cache::policy(relid) else {
            return true;
        };
        let Some(columns) = cache::key_columns(relid) else {
            return true;
        };
        let updated = pg_sys::ExecGetUpdatedCols(relation, estate);
        columns.iter().any(|&attno| {
            let bit = i32::from(attno) - pg_sys::FirstLowInvalidHeapAttributeNumber;
            // Each update assigns to the time of modification.
            attno == policy.ts.attno || pg_sys::bms_is_member(bit, updated)
        })
    }
}

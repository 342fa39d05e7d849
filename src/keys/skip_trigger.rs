//! Where the trigger need not fire: in an UPDATE that changes no key, and in an INSERT of many
//! rows into a table without expired ones.
//!
//! A BEFORE UPDATE trigger makes PostgreSQL lock each row before it updates it. The trigger is
//! taken out of the statement's private copy of the table's triggers; the catalog is unchanged.
//! `ttl.now()` is fixed for the statement, so a row live at its start stays live.

use super::bulk_precheck::{Budget, has_no_expired_row};
use super::plan;
use crate::pg::{lists, relation, roles};
use crate::settings;
use crate::store::extension::{self, Functions};
use pgrx::pg_sys::{self, CmdType, EState, PlannedStmt, ResultRelInfo};

/// From so many rows on, by the planner's estimate, it pays to look for expired ones.
const MANY_ROWS: f64 = 1000.0;

/// The events for which the trigger may be skipped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SkipFor {
    Nothing,
    Updates,
    Inserts,
    Both,
}

/// The events for which a statement may skip the trigger. A few comparisons for most statements.
///
/// # Safety
/// `plan` is a plan with result relations.
pub(crate) unsafe fn may_skip(plan: *mut PlannedStmt) -> SkipFor {
    // SAFETY: as required of the caller; a plan that writes has a ModifyTable on top.
    unsafe {
        match (*plan).commandType {
            _ if (*plan).hasModifyingCTE => SkipFor::Updates,
            CmdType::CMD_INSERT => {
                let top = (*plan).planTree.cast::<pg_sys::ModifyTable>();
                if (*top).plan.type_ != pg_sys::NodeTag::T_ModifyTable {
                    return SkipFor::Nothing;
                }
                let update = pg_sys::OnConflictAction::ONCONFLICT_UPDATE;
                let source = (*top).plan.lefttree;
                let many = !source.is_null() && (*source).plan_rows >= MANY_ROWS;
                match ((*top).onConflictAction == update, many) {
                    (true, true) => SkipFor::Both,
                    (true, false) => SkipFor::Updates,
                    (false, true) => SkipFor::Inserts,
                    (false, false) => SkipFor::Nothing,
                }
            }
            CmdType::CMD_DELETE => SkipFor::Nothing,
            _ => SkipFor::Updates,
        }
    }
}

/// Takes the trigger out of a statement where it has nothing to do.
///
/// # Safety
/// `estate` is that of a statement that was just started and will be executed.
pub(crate) unsafe fn skip(estate: *mut EState, skip_for: SkipFor) {
    let Some(functions) = extension::functions() else {
        return;
    };
    // SAFETY: as required of the caller.
    unsafe {
        for relation in lists::iter::<ResultRelInfo>((*estate).es_opened_result_relations) {
            let Some(triggers) = (*relation).ri_TrigDesc.as_mut() else {
                continue;
            };
            if matches!(skip_for, SkipFor::Updates | SkipFor::Both)
                && triggers.trig_update_before_row
                && is_only_one(triggers, &functions, pg_sys::TRIGGER_TYPE_UPDATE)
                && !updates_a_key(relation, estate)
            {
                triggers.trig_update_before_row = false;
            }
            if matches!(skip_for, SkipFor::Inserts | SkipFor::Both)
                && triggers.trig_insert_before_row
                && is_only_one(triggers, &functions, pg_sys::TRIGGER_TYPE_INSERT)
                && inserts_live_rows_only(relation)
            {
                triggers.trig_insert_before_row = false;
            }
        }
    }
}

/// Whether no row of the table is expired, and none comes expired: new rows are stamped, unless
/// they expire by a date of their own.
///
/// # Safety
/// `relation` is a result relation, which the statement has locked.
unsafe fn inserts_live_rows_only(relation: *mut ResultRelInfo) -> bool {
    // SAFETY: as required of the caller.
    let relid = unsafe { (*(*relation).ri_RelationDesc).rd_id };
    if settings::show_expired() || settings::preserve_ts() || roles::reads_physically(relid) {
        return false;
    }
    let table = relation::Open::locked(relid);
    // SAFETY: open and locked.
    unsafe { has_no_expired_row(&table, relid, &mut Budget::new()) }
}

/// Whether the extension's trigger is the only BEFORE trigger for rows and this event.
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

/// Whether the statement assigns to a column that a key depends on.
///
/// # Safety
/// `relation` is a result relation of the statement, which has locked it.
unsafe fn updates_a_key(relation: *mut ResultRelInfo, estate: *mut EState) -> bool {
    // SAFETY: as required of the caller.
    unsafe {
        let Some(plan) = plan::of((*relation).ri_RelationDesc) else {
            // No row can expire.
            return false;
        };
        let updated = pg_sys::ExecGetUpdatedCols(relation, estate);
        let clock = plan.policy.clock;
        plan.keys.iter().any(|key| {
            key.always_changes
                || key.sources.iter().any(|source| {
                    let bit = i32::from(source.attno) - pg_sys::FirstLowInvalidHeapAttributeNumber;
                    // Every UPDATE assigns to `_ts`.
                    Some(source.attno) == clock.map(|clock| clock.ts.attno)
                        || pg_sys::bms_is_member(bit, updated)
                })
        })
    }
}

//! Where the trigger need not fire: in an UPDATE that changes no key, and in an INSERT of many
//! rows into a table without expired ones.
//!
//! A BEFORE UPDATE trigger makes PostgreSQL lock each row before it updates it. The trigger is
//! taken out of the statement's private copy of the table's triggers; the catalog is unchanged.
//! `ttl.now()` is fixed for the statement, so a row live at its start stays live.

use super::bulk_precheck::{Budget, has_no_expired_row};
use super::plan;
use crate::pg::catalog::roles;
use crate::pg::exec::firing::TriggerTable;
use crate::pg::exec::relation;
use crate::pg::exec::table::Compared;
use crate::settings;
use crate::store::extension::Functions;
use pgrx::pg_sys::{self, CmdType, EState, PlannedStmt};

/// The planner's estimate of rows from which looking for expired ones pays.
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
pub(crate) unsafe fn skip(estate: *mut EState, skip_for: SkipFor, functions: &Functions) {
    if skip_for == SkipFor::Nothing {
        return;
    }
    let (insert, update) = (pg_sys::TRIGGER_TYPE_INSERT, pg_sys::TRIGGER_TYPE_UPDATE);
    // SAFETY: as required of the caller.
    for target in unsafe { TriggerTable::all(estate) } {
        if matches!(skip_for, SkipFor::Updates | SkipFor::Both)
            && target
                .triggers()
                .fire_only(update, functions.free_expired_keys)
            && !updates_a_key(target)
        {
            target.triggers().hide(update);
        }
        if matches!(skip_for, SkipFor::Inserts | SkipFor::Both)
            && target
                .triggers()
                .fire_only(insert, functions.free_expired_keys)
            && inserts_live_rows_only(target.table().oid(), target.estimated_rows())
        {
            target.triggers().hide(insert);
        }
    }
}

/// Whether no row of the table is expired, and none comes expired: new rows are stamped, unless
/// they expire by a date of their own. The statement has locked the table.
fn inserts_live_rows_only(relid: pg_sys::Oid, estimate: f64) -> bool {
    if settings::show_expired() || settings::preserve_ts() || roles::reads_physically(relid) {
        return false;
    }
    let table = relation::OpenRelation::locked(relid);
    has_no_expired_row(&table, relid, &mut Budget::for_rows(estimate))
}

/// Whether the statement assigns to a column that a key depends on.
fn updates_a_key(target: TriggerTable<'_>) -> bool {
    let Some(plan) = plan::of(target.table()) else {
        // No row can expire.
        return false;
    };
    let is_updated = target.updated();
    // Every UPDATE assigns to `_ts`.
    let ts = plan.policy.clock.map(|clock| clock.ts.attno);
    let changes = |source: &Compared| Some(source.attno) == ts || is_updated(source.attno);
    let mut keys = plan.keys.iter();
    keys.any(|key| key.always_changes || key.sources.iter().any(changes))
}

//! Where the trigger need not fire: in an UPDATE that changes no key.
//!
//! A BEFORE UPDATE trigger makes PostgreSQL lock each row before it updates it. The trigger is
//! taken out of the statement's private copy of the table's triggers; the catalog is unchanged.

use super::plan;
use crate::pg::exec::executor::StatementPlan;
use crate::pg::exec::firing::TriggerTable;
use crate::pg::exec::table::Compared;
use crate::store::extension::Functions;
use pgrx::pg_sys::{CmdType, EState};

/// Whether the statement may update rows. A few comparisons for most statements.
pub(crate) fn may_update(plan: StatementPlan<'_>) -> bool {
    plan.hasModifyingCTE
        || match plan.commandType {
            CmdType::CMD_INSERT => plan.updates_on_conflict(),
            command => command != CmdType::CMD_DELETE,
        }
}

/// Takes the trigger for UPDATE out of a statement where it has nothing to do.
///
/// # Safety
/// `estate` is that of a statement that was just started and will be executed.
pub(crate) unsafe fn skip(estate: *mut EState, functions: &Functions) {
    // SAFETY: as required of the caller.
    for target in unsafe { TriggerTable::all(estate) } {
        let triggers = target.triggers();
        if triggers.fire_only_at_update(functions.free_expired_keys) && !updates_a_key(target) {
            triggers.hide_update();
        }
    }
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

//! Where the constraint on the override (C3) need not be evaluated: in a statement that gives none,
//! or a constant that may be one.
//!
//! The constraint is a tenth of what a single INSERT or UPDATE costs, nearly all of it for parsing
//! and preparing an expression (`docs/decisions/0043-constraint-of-the-override.md`).

use crate::pg::exec::executor::StatementPlan;
use crate::pg::exec::firing::TriggerTable;
use crate::policy;
use crate::store::cache;
use crate::store::extension::Functions;
use pgrx::pg_sys::{self, CmdType, EState};

/// Leaves the constraint out of the tables that the statement writes to.
///
/// # Safety
/// `estate` is that of a statement that was just started and will be executed, one INSERT or
/// UPDATE.
pub(crate) unsafe fn leave_out(
    estate: *mut EState,
    plan: StatementPlan<'_>,
    functions: &Functions,
) {
    // SAFETY: as required of the caller.
    for target in unsafe { TriggerTable::all(estate) } {
        let table = target.table().oid();
        let clock = cache::policy(table).and_then(|policy| policy.clock);
        // One that is generated changes with other columns.
        if let Some(ttl) = clock
            .and_then(|clock| clock.ttl)
            .filter(|ttl| !ttl.generated)
            && writes_overrides_only(plan, target, ttl.attno, functions)
        {
            target.leave_out_only_check(functions.is_override, ttl.attno);
        }
    }
}

/// Whether no row that the statement writes has another value in the column than an override, or
/// than the one that it had.
fn writes_overrides_only(
    plan: StatementPlan<'_>,
    target: TriggerTable<'_>,
    ttl: i16,
    functions: &Functions,
) -> bool {
    // A trigger of the user's may change the column.
    let changes_rows = |event| {
        target
            .triggers()
            .has_before_row(event, functions.free_expired_keys)
    };
    let updates = plan.commandType == CmdType::CMD_UPDATE || plan.updates_on_conflict();
    if updates && (target.updated()(ttl) || changes_rows(pg_sys::TRIGGER_TYPE_UPDATE)) {
        return false;
    }
    // Also for an UPDATE, which inserts a row that it moves to this partition.
    if changes_rows(pg_sys::TRIGGER_TYPE_INSERT) {
        return false;
    }
    let given = || plan.inserted_int4(ttl);
    plan.commandType == CmdType::CMD_UPDATE
        || given().is_some_and(|given| given.is_none_or(policy::is_override))
}

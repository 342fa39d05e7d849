//! The entry of a written row in the index for deletion, computed without PostgreSQL's preparing
//! the index's expression in each statement.

use crate::pg::executor::Plan;
use crate::pg::firing::Target;
use crate::policy;
use crate::store::cache;
use crate::store::extension::Functions;
use pgrx::pg_sys::{CmdType, Datum, EState};

/// Opens the indexes of the table that the statement writes to, and prepares the one for deletion.
///
/// # Safety
/// `estate` is that of a statement that was just started and will be executed, one INSERT or
/// UPDATE.
pub(crate) unsafe fn prepare(estate: *mut EState, plan: Plan<'_>, functions: &Functions) {
    // SAFETY: as required of the caller.
    let mut targets = unsafe { Target::all(estate) };
    // Of several partitions most will not be written to.
    if let (Some(target), None) = (targets.next(), targets.next())
        && let Some(function) = functions.expiry_key
        && let Some(policy) = cache::policy(target.table().oid())
        && policy.clock.is_some_and(|clock| clock.ttl.is_some())
        // Most are heap-only, and have no entry.
        && (plan.commandType == CmdType::CMD_INSERT || policy.ts_granularity == 0)
    {
        target.compute_index_entries(function, expiry_key, plan.minds_conflicts());
    }
}

/// `ttl.expiry_key(_ts, ttl)`
fn expiry_key(ts: Option<Datum>, ttl: Option<Datum>) -> Option<Datum> {
    let ts = ts.map(|ts| ts.value() as i64);
    let ttl = ttl.map(|ttl| ttl.value() as i32);
    policy::expiry_key(ts, ttl).map(Datum::from)
}

//! The restriction that hides expired rows, as an expression.

use crate::pg::extension::Functions;
use crate::pg::nodes;
use crate::store::TablePolicy;
use pgrx::pg_sys::{self, Expr, RelOptInfo};

/// `PARTITION_STRATEGY_RANGE`: a macro in 15, an enum from 16 on.
const STRATEGY_RANGE: u8 = b'r';

/// "The row is live", for the range table's entry `varno`.
pub(crate) fn live_condition(functions: &Functions, policy: &TablePolicy, varno: u32) -> *mut Expr {
    let ts = nodes::var(varno, &policy.ts);
    let default = nodes::int4(policy.default_ttl);
    match &policy.ttl {
        Some(column) => {
            let args = [ts, nodes::var(varno, column), default];
            nodes::call(functions.live_override, pg_sys::BOOLOID, &args)
        }
        None => nodes::call(functions.live_default, pg_sys::BOOLOID, &[ts, default]),
    }
}

/// "The row is live, or else could not be removed", for the range table's entry
/// `varno`. It removes the row, so it is evaluated after all other conditions: its
/// function has a high cost.
pub(super) fn live_or_removed(
    functions: &Functions,
    policy: &TablePolicy,
    varno: u32,
) -> *mut Expr {
    let ttl = match &policy.ttl {
        Some(column) => nodes::var(varno, column),
        None => nodes::int4(None),
    };
    let args = [
        nodes::table_oid(varno),
        nodes::ctid(varno),
        nodes::var(varno, &policy.ts),
        ttl,
        nodes::int4(policy.default_ttl),
    ];
    nodes::call(functions.live_or_removed, pg_sys::BOOLOID, &args)
}

/// What the planner prunes partitions by: where the table is partitioned by its
/// `_ts` and has no overrides, the plain comparison `_ts > ttl.cutoff(default)`.
/// It comes beside the condition above, not in its place, because only that one
/// is free and so evaluated before any function of a user.
///
/// # Safety
/// `rel` is the relation as the planner has just read it.
pub(super) unsafe fn pruning_condition(
    functions: &Functions,
    policy: &TablePolicy,
    rel: *mut RelOptInfo,
) -> Option<*mut Expr> {
    let seconds = policy
        .default_ttl
        .filter(|&default| default > 0 && policy.ttl.is_none() && policy.ts.not_null)?;
    // SAFETY: as required of the caller.
    let varno = unsafe { (*rel).relid };
    let ts = nodes::var(varno, &policy.ts);
    // SAFETY: as required of the caller.
    if !unsafe { is_partitioned_by(rel, ts) } {
        return None;
    }
    let timestamptz = pg_sys::TIMESTAMPTZOID;
    let cutoff = nodes::call(functions.cutoff, timestamptz, &[nodes::int4(Some(seconds))]);
    Some(nodes::greater_than(timestamptz, ts, cutoff))
}

/// Whether `column` is the first partition key of a range-partitioned table.
unsafe fn is_partitioned_by(rel: *mut RelOptInfo, column: *mut Expr) -> bool {
    // SAFETY: a partitioned relation has a scheme and a list of expressions for each key column.
    unsafe {
        let Some(scheme) = (*rel).part_scheme.as_ref() else {
            return false;
        };
        if scheme.strategy as u8 != STRATEGY_RANGE || (*rel).partexprs.is_null() {
            return false;
        }
        crate::pg::lists::iter::<pg_sys::Node>(*(*rel).partexprs)
            .any(|key| nodes::same(key, column))
    }
}

//! The time by which a statement on a reference table of Citus judges rows, on each node: that at
//! which its distributed transaction began, so that all copies find the same rows
//! (`docs/decisions/0063-citus.md`).

use super::execution;
use crate::citus;
use crate::error::{Error, Result};
use crate::pg::abi::externs;
use crate::pg::catalog;
use crate::pg::exec::executor::StatementPlan;
use crate::policy::micros;
use crate::store::cache;
use pgrx::{PgSqlErrorCode, pg_sys};

/// A copy of a reference table that has a time to live and that the statement writes to.
fn reference_shard(plan: StatementPlan<'_>) -> Option<pg_sys::Oid> {
    let is_one = |&relid: &pg_sys::Oid| {
        cache::policy(relid).is_some_and(|policy| policy.is_reference_shard && policy.expires())
    };
    plan.written().find(is_one)
}

/// Before such a statement starts: it gets its transaction's time. Outside a distributed transaction
/// there is but one copy.
pub(crate) fn begin(plan: StatementPlan<'_>) -> Result<()> {
    let Some(relid) = reference_shard(plan) else {
        return Ok(());
    };
    if let Some(begun) = citus::begun_at() {
        check(relid, begun)?;
        execution::give(begun);
    }
    Ok(())
}

/// After it: what an older transaction would have found may be deleted from a copy by now.
pub(crate) fn check_age(plan: StatementPlan<'_>) -> Result<()> {
    if citus::is_known_to_be_absent() {
        return Ok(());
    }
    match reference_shard(plan).zip(citus::begun_at()) {
        Some((relid, begun)) => check(relid, begun),
        None => Ok(()),
    }
}

fn check(relid: pg_sys::Oid, begun: i64) -> Result<()> {
    let now = externs::GetCurrentTimestamp();
    if now.saturating_sub(begun).saturating_abs() <= micros(citus::REFERENCE_MARGIN) {
        return Ok(());
    }
    let table = catalog::qualified_name(relid);
    Err(Error::new(
        PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
        format!("the distributed transaction is too old to write to {table}"),
    )
    .detail(format!(
        "It began over {} seconds ago by this node's clock. Copies of the reference table may no longer have the same expired rows.",
        citus::REFERENCE_MARGIN
    ))
    .hint("Try again in a new transaction. If that fails, too, set the nodes' clocks."))
}

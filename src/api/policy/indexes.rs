//! Builds and drops the indexes that deletion uses (C11).

use super::cluster;
use crate::error::Result;
use crate::pg::catalog::index;
use crate::pg::catalog::{self, qualified_name};
use crate::policy::Policy;
use crate::store::missing_index::{self, missing};
use crate::store::{TablePolicy, cache};
use pgrx::pg_sys;

/// Builds the indexes that the policy wants and the table lacks; returns their names.
pub(in crate::api) fn build_missing(
    relid: pg_sys::Oid,
    policy: &Policy,
    columns: &TablePolicy,
) -> Result<Vec<String>> {
    let Some(clock) = columns.clock else {
        return Ok(vec![]);
    };
    let before = index::list(relid);
    if let Some(definition) = missing(relid, policy, clock) {
        let table = qualified_name(relid);
        let create = format!("CREATE INDEX ON {table} {definition}");
        cluster::alter(relid, &create)?;
    }
    let after = index::list(relid).into_iter();
    let built = after.filter(|index| !before.contains(index));
    Ok(built.map(catalog::relation_name).collect())
}

/// Whether the policy asks for indexes that are still to be built.
pub(in crate::api) fn are_missing(
    relid: pg_sys::Oid,
    policy: &Policy,
    columns: &TablePolicy,
) -> bool {
    missing_index::are_wanted(relid, policy)
        && columns
            .clock
            .is_some_and(|clock| missing(relid, policy, clock).is_some())
}

/// C21: whether the builder has work at the table: to build what is missing, if that is asked for,
/// or to drop what it left behind. A temporary table is its session's own.
pub(in crate::api) fn is_work_left(
    relid: pg_sys::Oid,
    policy: &Policy,
    columns: &TablePolicy,
) -> bool {
    let temporary =
        catalog::class(relid).is_some_and(|class| class.persistence == pg_sys::RELPERSISTENCE_TEMP);
    !temporary
        && (policy.build_pending && are_missing(relid, policy, columns)
            || are_left_over(relid, columns))
}

/// Whether the builder has left indexes behind that are not valid: it alone drops them.
fn are_left_over(relid: pg_sys::Oid, columns: &TablePolicy) -> bool {
    columns.clock.is_some()
        && catalog::all_inheritors(relid).into_iter().any(|table| {
            let clock = cache::policy(table).and_then(|policy| policy.clock);
            clock.is_some_and(|clock| !missing_index::left_over(table, clock).is_empty())
        })
}

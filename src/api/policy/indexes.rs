//! Builds and drops the indexes that deletion uses (C11).

use super::cluster;
use crate::error::{Error, Result};
use crate::pg::catalog::index;
use crate::pg::catalog::{self, qualified_name};
use crate::policy::Policy;
use crate::store::missing_index::{self, missing};
use crate::store::ttl_index::{self, TtlIndex};
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
    let Some(definition) = missing(relid, policy, clock) else {
        return Ok(vec![]);
    };
    let table = qualified_name(relid);
    let built = create(relid, &format!("CREATE INDEX ON {table} {definition}"))?;
    Ok(vec![catalog::relation_name(built)])
}

/// Creates an index of the table by this statement.
pub(in crate::api) fn create(relid: pg_sys::Oid, statement: &str) -> Result<pg_sys::Oid> {
    let before = index::list(relid);
    cluster::alter(relid, statement)?;
    let mut after = index::list(relid).into_iter();
    let created = after.find(|index| !before.contains(index));
    created.ok_or_else(|| Error::not_ready("the index that was created is not there"))
}

/// The indexes by which rows can expire and that are as asked for, and their names: TTL indexes first, as an ordinary one
/// may exist beside one.
pub(in crate::api) fn alike(
    relid: pg_sys::Oid,
    policy: Option<&Policy>,
    fits: impl Fn(&TtlIndex) -> bool,
) -> Vec<(pg_sys::Oid, String)> {
    let named = |index| (index, catalog::relation_name(index));
    let mut found: Vec<_> = index::list(relid)
        .into_iter()
        .filter(|&index| matches!(ttl_index::read(index), Some(Ok(found)) if fits(&found)))
        .map(named)
        .collect();
    found.sort_by_key(|(_, name)| policy.is_none_or(|policy| policy.rule(name).is_none()));
    found
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

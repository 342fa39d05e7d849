//! Builds and drops the indexes that deletion uses (C11).

use super::{cluster, guard};
use crate::error::{Error, Result};
use crate::pg::catalog::index;
use crate::pg::catalog::{self, qualified_name};
use crate::policy::Policy;
use crate::store::missing_index::{self, missing};
use crate::store::ttl_index::{self, TtlIndex};
use crate::store::{TablePolicy, cache, expiry_index, index_of};
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

/// The indexes that were built for deletion, but those whose name another index has taken.
pub(in crate::api) fn built(relid: pg_sys::Oid, policy: &Policy) -> Vec<pg_sys::Oid> {
    let column = |name: &Option<String>| catalog::attribute(relid, name.as_deref()?);
    let Some(ts) = column(&policy.ts_column) else {
        return vec![];
    };
    let ttl = column(&policy.ttl_column);
    // By `_ts` alone: from before the table had an override column.
    let mut serving = expiry_index::find(relid, &ts, None);
    serving.extend(expiry_index::find(relid, &ts, ttl.as_ref()));
    let named = policy.added.indexes.iter();
    let built = named.filter_map(|name| index_of(relid, name));
    built.filter(|index| serving.contains(index)).collect()
}

/// W9: says that a table keeps the indexes that were built for deletion, though it is to have none.
pub(in crate::api) fn tell_of_unneeded(relid: pg_sys::Oid) -> Result<()> {
    let Some(policy) = guard::own_policy(relid)? else {
        return Ok(());
    };
    if missing_index::are_wanted(relid, &policy) {
        return Ok(());
    }
    let names: Vec<String> = built(relid, &policy)
        .into_iter()
        .map(qualified_name)
        .collect();
    if names.is_empty() {
        return Ok(());
    }
    let (table, names) = (qualified_name(relid), names.join(", "));
    Error::for_notice(format!("table {table} keeps indexes for deletion: {names}"))
        .detail(format!(
            "With index => '{}' it needs none, but deletion uses them while they are there.",
            policy.index.name()
        ))
        .hint(format!("To drop them, run: DROP INDEX {names};"))
        .notice();
    Ok(())
}

/// Creates an index of the table by this statement.
pub(in crate::api) fn create(relid: pg_sys::Oid, statement: &str) -> Result<pg_sys::Oid> {
    let before = index::list(relid);
    cluster::run(relid, statement)?;
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

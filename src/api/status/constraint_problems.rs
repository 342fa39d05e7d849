//! `ttl.problems`: constraints that are gone, and what `ttl.enable` added without a policy.

use crate::api::policy::problem::Problem;
use crate::keys::{TRIGGER_NAME, trigger_placement};
use crate::pg::abi::report::or_raise;
use crate::pg::abi::values;
use crate::pg::catalog::constraints;
use crate::pg::catalog::inheritance::{Topmost, topmost};
use crate::pg::catalog::{self, qualified_name, quote_identifier, quote_literal};
use crate::policy::Policy;
use crate::store::{TablePolicy, extension, governing_label, labels, override_check, stored_calls};
use pgrx::pg_sys;
use std::collections::HashSet;

/// The constraints that `ttl.enable` added, dropped where nothing guarded them:
/// under `row_security = off`, or while TTL was off. The caller has checked that TTL is on.
pub(in crate::api) fn of(
    relid: pg_sys::Oid,
    policy: &Policy,
    columns: &TablePolicy,
) -> Vec<Problem> {
    let Some(clock) = columns.clock else {
        return vec![];
    };
    let mut problems = Vec::new();
    let table = qualified_name(relid);
    let added = &policy.added;
    let ts = policy.ts_column.as_deref();
    let ts = ts.filter(|name| added.has_column(name) && !clock.ts.not_null);
    if let Some(ts) = ts.map(quote_identifier) {
        let statement = format!("ALTER TABLE {table} ALTER COLUMN {ts} SET NOT NULL");
        let text = format!("column {ts} may be NULL, and such a row never expires: {statement}");
        problems.push(Problem::new(text).with_statement_of_owner(relid, format!(
            "/* Such rows expire counted from now: */ UPDATE {table} SET {ts} = ttl.current_ts() WHERE {ts} IS NULL; {statement};"
        )));
    }
    let ttl = policy.ttl_column.as_deref();
    let ttl = ttl.filter(|name| added.has_column(name) || added.ttl_check);
    // A generated override needs no constraint; one of the user's on that column will do.
    if let (Some(column), Some(name)) = (clock.ttl, ttl.map(quote_identifier))
        && !column.generated
        && !constraints::of(relid)
            .iter()
            .any(|it| !it.is_not_null() && it.columns == [column.attno])
    {
        let condition = override_check::condition(&name);
        let statement = format!("ALTER TABLE {table} ADD CHECK ({condition})");
        let text = format!("column {name} takes any number as an override: {statement}");
        problems.push(Problem::new(text).with_statement(statement + ";"));
    }
    problems
}

/// The tables that have a trigger or constraint of a time to live, and neither a label nor an ancestor with one. Of a
/// family, the table that a policy belongs to: the partitioned table, or the topmost parent that has such a thing.
pub(in crate::api) fn without_label() -> Vec<pg_sys::Oid> {
    let Some(functions) = extension::functions() else {
        return vec![];
    };
    let query = format!(
        "SELECT DISTINCT COALESCE(t.tgrelid, c.conrelid, a.adrelid)::pg_catalog.text \
           FROM pg_catalog.pg_depend AS d \
           LEFT JOIN pg_catalog.pg_trigger AS t ON t.oid OPERATOR(pg_catalog.=) d.objid \
            AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_trigger'::pg_catalog.regclass \
           LEFT JOIN pg_catalog.pg_constraint AS c ON c.oid OPERATOR(pg_catalog.=) d.objid \
            AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_constraint'::pg_catalog.regclass \
           LEFT JOIN pg_catalog.pg_attrdef AS a ON a.oid OPERATOR(pg_catalog.=) d.objid \
            AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_attrdef'::pg_catalog.regclass \
          WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass \
            AND d.refobjid OPERATOR(pg_catalog.=) ANY (ARRAY[{}, {}, {}]::pg_catalog.oid[]) \
            AND COALESCE(t.tgrelid, c.conrelid, a.adrelid) OPERATOR(pg_catalog.>) 0::pg_catalog.oid ORDER BY 1",
        functions.free_expired_keys.to_u32(),
        functions.is_override.to_u32(),
        functions.current_ts.to_u32()
    );
    let tables = or_raise(values::texts::<1>(&query)).into_iter();
    let tables = tables.filter_map(|[oid]| Some(pg_sys::Oid::from(oid.parse::<u32>().ok()?)));
    let found: HashSet<_> = tables
        .filter(|&relid| governing_label(relid).is_none())
        .collect();
    let mut known = Topmost::default();
    let mut head = |relid| topmost(relid, |_| None, &mut known, |table| found.contains(&table));
    let heads = found
        .iter()
        .filter_map(|&relid| Some(partitioned(head(relid)?)));
    let mut heads: Vec<_> = heads.collect();
    heads.sort_unstable_by_key(|relid| relid.to_u32());
    heads.dedup();
    heads
}

/// The table at the top of the partition tree to which the relation belongs, or itself.
fn partitioned(relid: pg_sys::Oid) -> pg_sys::Oid {
    let mut top = relid;
    while let Some(parent) = catalog::partitioned_parent(top) {
        top = parent;
    }
    top
}

/// A table that has what `ttl.enable` added, but no policy: a schema diff, or a restore without
/// security labels, leaves it so.
pub(in crate::api) fn without_policy(relid: pg_sys::Oid) -> Option<Problem> {
    if catalog::class(relid).is_none() || governing_label(relid).is_some() {
        return None;
    }
    let functions = extension::functions()?;
    let trigger = trigger_placement::has(relid)
        .then(|| format!("trigger {}", quote_identifier(TRIGGER_NAME)));
    let constraint = constraints::of(relid)
        .into_iter()
        .find(|constraint| constraint.calls(functions.is_override))
        .map(|constraint| format!("constraint {}", quote_identifier(&constraint.name)));
    let mut columns = 1..=catalog::column_count(relid);
    let default = columns.find(|&attno| stored_calls::is_current_ts(relid, attno));
    let mut found: Vec<String> = trigger.into_iter().chain(constraint).collect();
    if found.is_empty() {
        // An archive has the columns of its table, and often the defaults.
        let archives = |(_, policy): &(pg_sys::Oid, Policy)| {
            let chosen = policy.archive().and_then(|archive| archive.chosen);
            chosen.is_some_and(|archive| pg_sys::Oid::from(archive.table) == relid)
        };
        if labels().iter().any(archives) {
            return None;
        }
        let column = quote_identifier(&catalog::column_name(relid, default?));
        found.push(format!("the default of column {column}"));
    }
    let table = quote_literal(&qualified_name(partitioned(relid)));
    let has_clock = found.len() > usize::from(trigger_placement::has(relid)) || default.is_some();
    let enable = format!("ttl.enable({table}, seconds)");
    // The trigger alone is also that of a table that has TTL indexes only: which columns these were on is not known.
    let way = match has_clock {
        true => enable,
        false => format!(
            "ttl.expire_after({table}, column, seconds), for rows that expire after a date in a column, or {enable}"
        ),
    };
    let text = format!(
        "no row expires: the table has {} of a time to live but no policy, for example after a copy by LIKE \
         or a schema diff; {way} gives it one",
        found.join(" and ")
    );
    // The number of seconds is not known either: without one, rows expire by their overrides only, as a NOTICE says.
    let adopt = has_clock.then(|| format!("SELECT ttl.enable({table});"));
    Some(Problem::new(text).with_statements(adopt))
}

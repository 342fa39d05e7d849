//! Builds and drops the indexes that deletion uses (C11).

use crate::error::Result;
use crate::pg::catalog::{self, qualified_name, quote_identifier};
use crate::pg::{encoding, index};
use crate::policy::{IndexMethod, Policy};
use crate::store::expiry_index::{self, ExpectedIndex};
use crate::store::{Clock, TablePolicy, expected_indexes};
use pgrx::pg_sys;

/// Builds the indexes that the policy wants and the table lacks; returns their names.
pub(super) fn build_missing(
    relid: pg_sys::Oid,
    policy: &Policy,
    columns: &TablePolicy,
) -> Result<Vec<String>> {
    let (Some(method), Some(clock)) = (policy.index.access_method(), columns.clock) else {
        return Ok(vec![]);
    };
    let before = index::list(relid);
    for definition in missing(relid, policy, columns, clock) {
        encoding::run(&format!(
            "CREATE INDEX ON {} USING {method} {definition}",
            qualified_name(relid)
        ))?;
    }
    let after = index::list(relid).into_iter();
    let built = after.filter(|index| !before.contains(index));
    Ok(built.map(catalog::relation_name).collect())
}

/// Whether the policy asks for indexes that are still to be built.
pub(super) fn are_missing(relid: pg_sys::Oid, policy: &Policy, columns: &TablePolicy) -> bool {
    policy.index != IndexMethod::None
        && columns
            .clock
            .is_some_and(|clock| !missing(relid, policy, columns, clock).is_empty())
}

/// What the table needs indexes on for deletion and has none, as in CREATE INDEX.
pub(super) fn missing(
    relid: pg_sys::Oid,
    policy: &Policy,
    columns: &TablePolicy,
    clock: Clock,
) -> Vec<String> {
    let ts = quote_identifier(policy.ts_column.as_deref().unwrap_or_default());
    let ttl = quote_identifier(policy.ttl_column.as_deref().unwrap_or_default());
    let is_missing = |&wanted: &ExpectedIndex| {
        expiry_index::find(relid, wanted, &clock.ts, clock.ttl.as_ref()).is_empty()
    };
    let definition = |wanted| match wanted {
        ExpectedIndex::AllByTimestamp => format!("({ts})"),
        // One for both kinds of row.
        _ if policy.index != IndexMethod::Brin => format!("(ttl.expiry_key({ts}, {ttl}))"),
        ExpectedIndex::InheritingByTimestamp => format!("({ts}) WHERE {ttl} IS NULL"),
        ExpectedIndex::OverridingByExpiry => {
            format!("(ttl.expires_at({ts}, {ttl}, NULL)) WHERE {ttl} OPERATOR(pg_catalog.>) 0")
        }
    };
    let wanted = expected_indexes(columns).into_iter();
    let mut definitions: Vec<String> = wanted.filter(is_missing).map(definition).collect();
    definitions.dedup();
    definitions
}

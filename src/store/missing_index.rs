//! Indexes for deletion that a table lacks (C11), and the names of those built in the background
//! (C21).

use super::expiry_index::{self, ExpectedIndex};
use super::{Clock, TablePolicy, expected_indexes};
use crate::pg::catalog::{self, quote_identifier};
use crate::policy::{IndexMethod, Policy};
use pgrx::pg_sys;

/// The most bytes of a table's name in an index's: with its number and the table's OID there is
/// room for 63, in any encoding of the server.
const NAME: usize = 24;

/// An index that a table lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MissingIndex {
    /// Which of the table's; part of its name.
    number: u8,
    /// As in CREATE INDEX.
    pub(crate) definition: String,
}

impl MissingIndex {
    /// The name under which it is built in the background. The OID tells it from a user's, and
    /// stays when the table is renamed.
    pub(crate) fn name(&self, relid: pg_sys::Oid) -> String {
        let table = catalog::relation_name(relid);
        let mut end = table.len().min(NAME);
        while !table.is_char_boundary(end) {
            end -= 1;
        }
        format!("{}_ttl_{}_{}", &table[..end], relid.to_u32(), self.number)
    }
}

/// What the table needs indexes on for deletion and has none. Locks nothing.
pub(crate) fn missing(
    relid: pg_sys::Oid,
    policy: &Policy,
    columns: &TablePolicy,
    clock: Clock,
) -> Vec<MissingIndex> {
    let ts = quote_identifier(policy.ts_column.as_deref().unwrap_or_default());
    let ttl = quote_identifier(policy.ttl_column.as_deref().unwrap_or_default());
    let is_missing = |&wanted: &ExpectedIndex| {
        expiry_index::find(relid, wanted, &clock.ts, clock.ttl.as_ref()).is_empty()
    };
    let index = |wanted| {
        let (number, definition) = match wanted {
            ExpectedIndex::AllByTimestamp => (0, format!("({ts})")),
            // One for both kinds of row (docs/decisions/0042-one-index.md).
            _ if policy.index != IndexMethod::Brin => (3, format!("(ttl.expiry_key({ts}, {ttl}))")),
            ExpectedIndex::InheritingByTimestamp => (1, format!("({ts}) WHERE {ttl} IS NULL")),
            ExpectedIndex::OverridingByExpiry => (
                2,
                format!("(ttl.expires_at({ts}, {ttl}, NULL)) WHERE {ttl} OPERATOR(pg_catalog.>) 0"),
            ),
        };
        MissingIndex { number, definition }
    };
    let wanted = expected_indexes(columns).into_iter();
    let mut found: Vec<MissingIndex> = wanted.filter(is_missing).map(index).collect();
    found.dedup();
    found
}

/// Whether the index has a name that [`MissingIndex::name`] gives to one of the table's.
pub(crate) fn is_built_name(relid: pg_sys::Oid, name: &str) -> bool {
    (0..=3).any(|number| name.ends_with(&format!("_ttl_{}_{number}", relid.to_u32())))
}

/// What a build has left of indexes that were not completed: by name and definition.
pub(crate) fn left_over(relid: pg_sys::Oid, clock: Clock) -> Vec<pg_sys::Oid> {
    let invalid = expiry_index::find_invalid(relid, &clock.ts, clock.ttl.as_ref()).into_iter();
    let is_built = |&index: &pg_sys::Oid| is_built_name(relid, &catalog::relation_name(index));
    invalid.filter(is_built).collect()
}

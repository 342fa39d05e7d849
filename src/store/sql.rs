//! A policy's rule in SQL, for the extension's own queries.
//!
//! The conditions are put in when the query is planned ([`crate::visibility`]): a
//! predicate's text would mean what the `search_path` of the moment makes of it.

use crate::pg::catalog::quote_literal;

/// The condition "the row is live" under this default, in a query that is run by
/// [`crate::visibility::statement::with_expired_rows_of`] on one table.
pub(crate) fn live_condition(default_ttl: Option<i32>) -> String {
    let default = default_ttl.map_or("NULL".to_owned(), |seconds| seconds.to_string());
    format!("ttl.row_is_live(tableoid, {default})")
}

/// The predicate of a TTL index, in such a query.
pub(crate) fn rule_applies(index: &str) -> String {
    format!("ttl.rule_applies(tableoid, {})", quote_literal(index))
}

//! A policy's conditions in SQL, for the extension's own queries.
//!
//! They are placeholders, replaced when the query is planned ([`crate::visibility`]): the
//! meaning of a predicate's text would depend on `search_path`.

use super::dates::DateKind;
use super::{DateSource, Rule};
use crate::pg::catalog::{quote_identifier, quote_literal};

/// The condition "the row is live" with this default, in a query on one table that
/// [`crate::visibility::statement::with_expired_rows_of`] runs.
pub(crate) fn live_condition(default_ttl: Option<i32>) -> String {
    let default = default_ttl.map_or("NULL".to_owned(), |seconds| seconds.to_string());
    format!("ttl_internal.row_is_live(tableoid, {default})")
}

/// The condition "the row is live, or has expired less than a number of seconds ago" (C23) by the
/// policy in force, in such a query.
pub(crate) fn kept_condition(seconds: i32) -> String {
    format!("ttl_internal.row_is_kept(tableoid, {seconds})")
}

/// The predicate of a TTL index, in such a query.
pub(crate) fn rule_applies(index: &str) -> String {
    format!(
        "ttl_internal.rule_applies(tableoid, {})",
        quote_literal(index)
    )
}

/// The key of a TTL index, in such a query, and its type.
pub(crate) fn rule_key(rule: &Rule) -> (String, DateKind) {
    let kind = rule.date.kind;
    match &rule.key {
        DateSource::Column(_, name) if rule.date.is_array => {
            let earliest = format!("ttl.earliest({})", quote_identifier(name));
            (earliest, DateKind::Timestamptz)
        }
        DateSource::Column(_, name) => (quote_identifier(name), kind),
        DateSource::Expression(_) => {
            let function = match kind {
                DateKind::Timestamptz => "rule_timestamptz",
                DateKind::Timestamp => "rule_timestamp",
                DateKind::Date => "rule_date",
            };
            let index = quote_literal(&rule.index);
            (format!("ttl_internal.{function}(tableoid, {index})"), kind)
        }
    }
}

//! `ttl.problems`: tables above one with a time to live that have none themselves.

use crate::api::policy::enable_arguments::Asked;
use crate::api::policy::expire_index::IndexOptions;
use crate::api::policy::problem::Problem;
use crate::pg::catalog::{self, index, qualified_name, quote_identifier, quote_literal};
use crate::policy::{IndexRule, Policy};
use crate::store::ttl_index::{self, TtlKey};
use crate::store::{TablePolicy, index_of, predicate};
use pgrx::pg_sys;

/// One problem for each table at the top, while the time to live is on: rows that are written through it are not stamped, which is refused, or those
/// of its other partitions and children do not expire.
pub(super) fn of(relid: pg_sys::Oid, policy: &Policy, columns: &TablePolicy) -> Vec<Problem> {
    let ancestors = catalog::ancestors(relid).into_iter();
    let top = ancestors.filter(|&table| catalog::parents(table).is_empty());
    top.map(|parent| {
        let shown = qualified_name(parent);
        let text = match columns.needs_clock() {
            true => {
                format!("no INSERT or UPDATE through {shown}, which has no time to live itself")
            }
            false => format!(
                "rows of {shown} expire only in {}: {shown} has no time to live itself",
                qualified_name(relid)
            ),
        };
        Problem::new(text).with_statement_on(parent, relid, moved_up(relid, policy, parent))
    })
    .collect()
}

/// Gives the parent the time to live that the table has, and ends that of the table.
fn moved_up(relid: pg_sys::Oid, policy: &Policy, parent: pg_sys::Oid) -> String {
    let mut statements = Vec::new();
    if let (Some(seconds), Some(ts)) = (policy.default_ttl, &policy.ts_column) {
        let usual = Policy::default();
        let asked = Asked {
            default_ttl: Some(seconds),
            ts_column: Some(ts.clone()).filter(|_| policy.ts_column != usual.ts_column),
            ttl_column: Some(policy.ttl_column.clone())
                .filter(|_| policy.ttl_column != usual.ttl_column),
            document_column: policy.document_column.clone().map(Some),
            hidden: (!policy.hidden).then_some(false),
            ..Asked::default()
        };
        statements.push(format!("SELECT {});", asked.call(parent)));
    }
    let rules = policy.rules.iter();
    statements.extend(rules.filter_map(|rule| expiring_by(relid, rule, policy.hidden, parent)));
    let table = qualified_name(relid);
    statements.push(format!("SECURITY LABEL FOR ttl ON TABLE {table} IS NULL;"));
    statements.join(" ")
}

/// Makes a TTL index of the parent as this one is; `None` if no row expires by it.
fn expiring_by(
    relid: pg_sys::Oid,
    rule: &IndexRule,
    hidden: bool,
    parent: pg_sys::Oid,
) -> Option<String> {
    let index = index_of(relid, &rule.index)?;
    let found = ttl_index::read(index)?.ok()?;
    let zone = rule.time_zone.as_deref().filter(|_| found.date.is_local());
    let zone = zone.map_or(String::new(), |zone| {
        format!(", time_zone => {}", quote_literal(zone))
    });
    let options = IndexOptions {
        hidden: (!hidden).then_some(false),
        ..IndexOptions::default()
    };
    let rest = format!("{}{zone}{}", rule.expire_after_seconds, options.arguments());
    let key = match found.key {
        TtlKey::Column(attno) if found.predicate.is_none() && !found.date.is_array => {
            let column = quote_literal(&catalog::column_name(relid, attno));
            let parent = quote_literal(&qualified_name(parent));
            return Some(format!(
                "SELECT ttl.expire_after({parent}, {column}, {rest});"
            ));
        }
        TtlKey::Column(attno) if !found.date.is_array => {
            quote_identifier(&catalog::column_name(relid, attno))
        }
        _ => format!("({})", predicate::written_key(index).ok()?),
    };
    let condition = match &found.predicate {
        Some(_) => format!(" WHERE {}", predicate::written(index).ok()?),
        None => String::new(),
    };
    let name = catalog::free_relation_name(parent, &rule.index);
    let created = quote_literal(&index::qualified_name(parent, &name));
    Some(format!(
        "CREATE INDEX {} ON {} ({key}){condition}; SELECT ttl.expire_index({created}, {rest});",
        quote_identifier(&name),
        qualified_name(parent)
    ))
}

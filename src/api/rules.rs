//! `ttl.rules`: a table's TTL indexes, as MongoDB's `listIndexes` shows them.

use crate::error::{Result, or_raise};
use crate::pg::catalog;
use crate::pg::ttl_index;
use crate::store::{index_of, label_of};
use pgrx::prelude::*;
use pgrx::{JsonB, pg_sys};
use serde_json::{Map, Value, json};

/// `ttl.rules(rel) RETURNS jsonb`: one object for each TTL index that the table's label
/// names; with its name and seconds only, if it cannot be used (`ttl.problems` says why).
#[pg_extern(sql = false)]
fn rules(rel: pg_sys::Oid) -> JsonB {
    let rules = label_of(rel).map_or(vec![], |policy| policy.rules);
    let shown = rules.into_iter().map(|rule| {
        let mut shown = Map::new();
        shown.insert("name".into(), json!(rule.index));
        shown.insert(
            "expireAfterSeconds".into(),
            json!(rule.expire_after_seconds),
        );
        if let Some(index) = index_of(rel, &rule.index)
            && let Some(Ok(found)) = ttl_index::read(index)
        {
            let column = ttl_index::column_name(rel, found.attno);
            let direction = if found.descending { -1 } else { 1 };
            shown.insert("key".into(), json!({ column: direction }));
            if let Some(predicate) = or_raise(predicate(index)) {
                shown.insert("partialFilterExpression".into(), json!(predicate));
            }
        }
        Value::Object(shown)
    });
    JsonB(Value::Array(shown.collect()))
}

/// The predicate as PostgreSQL writes it.
fn predicate(index: pg_sys::Oid) -> Result<Option<String>> {
    let query = format!(
        "SELECT pg_catalog.pg_get_expr(indpred, indrelid) FROM pg_catalog.pg_index \
         WHERE indexrelid OPERATOR(pg_catalog.=) {}",
        index.to_u32()
    );
    // Not Spi::get_one, which takes a transaction ID: a standby has none to give.
    let found = Spi::connect(|client| {
        let row = client.select(&query, Some(1), &[])?.first();
        if row.is_empty() { Ok(None) } else { row.get(1) }
    })?;
    Ok(found.filter(|_| catalog::class(index).is_some()))
}

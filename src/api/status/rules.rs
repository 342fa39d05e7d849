//! `ttl_internal.rules`: a table's TTL indexes, as MongoDB's `listIndexes` shows them.

use crate::error::Error;
use crate::pg::abi::values::Json;
use crate::pg::catalog;
use crate::pg::session::contained_errors;
use crate::policy::IndexRule;
use crate::store::ttl_index::{self, TtlKey};
use crate::store::{cache, index_of, predicate};
use pgrx::pg_sys;
use pgrx::prelude::*;
use serde_json::{Map, Value, json};

/// `ttl_internal.rules(rel) RETURNS jsonb`: one object for each TTL index that the label names. An unusable
/// index shows only its name and seconds; an unreadable condition is left out (`ttl.problems` says
/// why).
#[pg_extern(sql = false)]
fn rules(rel: pg_sys::Oid) -> Json {
    let policy = cache::own_label(rel);
    let rules = policy.iter().flat_map(|policy| &policy.rules);
    let shown = rules.map(|rule| {
        let mut shown = Map::new();
        shown.insert("name".into(), json!(rule.index));
        shown.insert(
            "expireAfterSeconds".into(),
            json!(rule.expire_after_seconds),
        );
        if let Ok(Some(further)) = contained_errors::contain(|| key_and_condition(rel, rule)) {
            shown.extend(further);
        }
        Value::Object(shown)
    });
    Json(Value::Array(shown.collect()))
}

fn key_and_condition(rel: pg_sys::Oid, rule: &IndexRule) -> Option<Map<String, Value>> {
    let index = index_of(rel, &rule.index)?;
    let found = ttl_index::read(index)?.ok()?;
    let column = match found.key {
        TtlKey::Column(attno) => catalog::column_name(rel, attno),
        TtlKey::Expression(_) => contained_errors::contain(|| predicate::written_key(index))
            .ok()?
            .ok()?,
    };
    let direction = if found.descending { -1 } else { 1 };
    let mut shown = Map::new();
    shown.insert("key".into(), json!({ column: direction }));
    if found.date.is_local() {
        let zone = rule.time_zone.as_deref().unwrap_or("UTC");
        shown.insert("timeZone".into(), json!(zone));
    }
    if let Some(Ok(condition)) = condition(index) {
        shown.insert("partialFilterExpression".into(), json!(condition));
    }
    Some(shown)
}

/// The condition of a partial index as SQL, or why it cannot be read.
pub(in crate::api) fn condition(index: pg_sys::Oid) -> Option<Result<String, Error>> {
    ttl_index::is_partial(index)
        .then(|| contained_errors::contain(|| predicate::written(index)).flatten())
}

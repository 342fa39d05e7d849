//! What a label may say while a database has the objects of 0.1.0 (docs/decisions/0054-upgrades.md).

use super::Policy;
use serde_json::Value;

/// The fields of 0.1.0, whose library refuses labels with others.
const POLICY: [&str; 13] = [
    "version",
    "default_ttl",
    "ts_column",
    "ttl_column",
    "document_column",
    "index",
    "drop_partitions",
    "ts_granularity",
    "rules",
    "hidden",
    "table_oid",
    "database_oid",
    "added",
];
const ADDED: [&str; 4] = ["columns", "ts_default", "ttl_check", "indexes"];

impl Policy {
    /// The first part of the policy that 0.1.0 does not know.
    pub(crate) fn newer_than_0_1(&self) -> Option<String> {
        let label = serde_json::to_value(self).unwrap_or_default();
        let unknown = |value: Option<&Value>, known: &[&str]| {
            let mut names = value.and_then(Value::as_object)?.keys();
            names.find(|name| !known.contains(&name.as_str())).cloned()
        };
        unknown(Some(&label), &POLICY).or_else(|| unknown(label.get("added"), &ADDED))
    }
}

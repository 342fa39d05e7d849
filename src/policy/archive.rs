//! Where expired rows go.

/// The table into which rows are inserted as they are deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Archive {
    /// Its name, qualified and quoted, as of the call: what counts after a restore.
    pub(crate) name: String,
    /// What counts otherwise, so that it may be renamed; `None` in a label that a statement gave.
    pub(crate) oid: Option<u32>,
}

/// What a NOTIFY of a batch says (C28).
pub(crate) fn batch_payload(table: &str, rows: u64) -> String {
    serde_json::json!({ "table": table, "rows": rows }).to_string()
}

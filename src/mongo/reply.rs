//! What the commands answer, by MongoDB's names (D4, M6).

use serde::Serialize;

/// The answer of `ttl.create_index` (D4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreateIndexReply {
    ok: u8,
    /// Always false: no command creates a table.
    created_collection_automatically: bool,
    num_indexes_before: u32,
    num_indexes_after: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

impl CreateIndexReply {
    /// The numbers of the table's indexes before and after. Equal numbers do not mean that
    /// nothing was done ([`Self::existing`] says that): setting the default on an indexed clock
    /// (D4) adds no index.
    pub(crate) fn new(indexes_before: u32, indexes_after: u32) -> Self {
        Self {
            ok: 1,
            created_collection_automatically: false,
            num_indexes_before: indexes_before,
            num_indexes_after: indexes_after,
            note: None,
            name: None,
        }
    }

    /// The same index with the same seconds is there already: nothing was done.
    pub(crate) fn existing(indexes: u32) -> Self {
        Self {
            note: Some("all indexes already exist"),
            ..Self::new(indexes, indexes)
        }
    }

    /// Adds the index's name.
    pub(crate) fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

/// The answer of `ttl.coll_mod` (M6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct CollModReply {
    ok: u8,
    #[serde(
        rename = "expireAfterSeconds_old",
        skip_serializing_if = "Option::is_none"
    )]
    old: Option<i32>,
    #[serde(rename = "expireAfterSeconds_new")]
    new: i32,
}

impl CollModReply {
    /// The seconds before, if it was a TTL index, and now.
    pub(crate) fn new(old: Option<i32>, new: i32) -> Self {
        Self { ok: 1, old, new }
    }
}

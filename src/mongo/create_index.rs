//! `createIndexes` of one TTL index: its key and its options (D4, M7).

use super::CommandError;
use super::json::{object, present};
use super::value::{Key, Name, Predicate, Seconds, WholeSeconds};
use serde::Deserialize;

/// A TTL index to be created; or, with the clock's column `_ts`, the table's default to be set
/// (D4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CreateIndex {
    /// The only column of the index.
    pub(crate) column: String,
    /// The direction: -1 in MongoDB's `{"column": -1}`.
    pub(crate) descending: bool,
    /// When rows expire; which range is allowed depends on the column.
    pub(crate) expire_after_seconds: Seconds,
    /// The index's name; if there is none, the caller chooses one.
    pub(crate) name: Option<String>,
    /// M4: only rows that match it expire. SQL, not checked here.
    pub(crate) predicate: Option<String>,
}

/// The options by MongoDB's names. Those that do not apply to a TTL index are refused, so that
/// nobody relies on them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Options {
    #[serde(default, deserialize_with = "present")]
    expire_after_seconds: Option<WholeSeconds>,
    #[serde(default, deserialize_with = "present")]
    name: Option<Name>,
    #[serde(default, deserialize_with = "present")]
    partial_filter_expression: Option<Predicate>,
}

impl CreateIndex {
    /// Reads the two arguments of `ttl.create_index`.
    pub(crate) fn parse(keys: &str, options: &str) -> Result<Self, CommandError> {
        const SECONDS: &str = "options.expireAfterSeconds";
        let key = Key::parse(keys, "keys")?;
        let options: Options = object(options, "options")?;
        let seconds = options.expire_after_seconds.ok_or_else(|| {
            CommandError::new(SECONDS, "is required; CREATE INDEX makes a plain index")
        })?;
        Ok(Self {
            column: key.column,
            descending: key.descending,
            expire_after_seconds: Seconds::new(seconds, SECONDS),
            name: options.name.map(|Name(name)| name),
            predicate: options.partial_filter_expression.map(|Predicate(sql)| sql),
        })
    }
}

//! `createIndexes` of one TTL index: its key and its options (D4, M7).

use super::CommandError;
use super::json::{object, present};
use super::value::{Boolean, IndexKey, IndexName, PartialFilter, Seconds, WholeSeconds};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

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
    /// A unique index, which the caller refuses with the SQL that makes one.
    pub(crate) unique: bool,
}

/// The options by MongoDB's names. Those that would change what the index does are refused, so that
/// nobody relies on them. Those that `getIndexes()` shows and drivers add, and that change nothing
/// here, are ignored.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Options<'a> {
    #[serde(default, deserialize_with = "present")]
    expire_after_seconds: Option<WholeSeconds>,
    #[serde(default, deserialize_with = "present")]
    name: Option<IndexName>,
    #[serde(default, deserialize_with = "present")]
    partial_filter_expression: Option<PartialFilter>,
    #[serde(default, deserialize_with = "present")]
    unique: Option<Boolean>,
    #[serde(default, deserialize_with = "present", borrow)]
    key: Option<&'a RawValue>,
    /// The index format's version.
    #[serde(default, rename = "v")]
    _version: IgnoredAny,
    #[serde(default, rename = "background")]
    _background: IgnoredAny,
    /// The collection, as old servers show it.
    #[serde(default, rename = "ns")]
    _namespace: IgnoredAny,
    /// A row without a date never expires, in the index or not.
    #[serde(default, rename = "sparse")]
    _sparse: IgnoredAny,
}

impl CreateIndex {
    /// What the options may be, for a HINT.
    pub(crate) const OPTIONS: &str = "expireAfterSeconds, name, partialFilterExpression; v, background, ns and sparse are ignored";

    /// Reads the two arguments of `ttl.create_index`. The first may be a whole index, as
    /// `getIndexes()` shows it: `{"v": 2, "key": {"column": 1}, "expireAfterSeconds": 3600}`.
    pub(crate) fn parse(keys: &str, options: &str) -> Result<Self, CommandError> {
        if !is_whole_index(keys) {
            let key = IndexKey::parse(keys, "keys")?;
            return Self::of(Some(key), options, "options", "options.expireAfterSeconds");
        }
        let others: BTreeMap<String, &RawValue> = object(options, "options")?;
        if !others.is_empty() {
            let reason = "cannot be given where \"keys\" is a whole index, with its options";
            return Err(CommandError::new("options", reason));
        }
        Self::of(None, keys, "keys", "keys.expireAfterSeconds")
    }

    /// Reads the options at `path`, which have the key if the caller has none.
    fn of(
        key: Option<IndexKey>,
        options: &str,
        path: &str,
        seconds_path: &'static str,
    ) -> Result<Self, CommandError> {
        let options: Options = object(options, path)?;
        let key_path = format!("{path}.key");
        let repeated = options
            .key
            .map(|repeated| IndexKey::parse(repeated.get(), &key_path))
            .transpose()?;
        let key = match (key, repeated) {
            (Some(key), Some(repeated)) if key != repeated => {
                let reason = "is another key than that of \"keys\"";
                return Err(CommandError::new(&key_path, reason));
            }
            (Some(key), _) | (None, Some(key)) => key,
            (None, None) => return Err(CommandError::new(&key_path, "is required")),
        };
        let seconds = options.expire_after_seconds.ok_or_else(|| {
            CommandError::new(
                seconds_path,
                "is required; CREATE INDEX makes a plain index",
            )
        })?;
        Ok(Self {
            column: key.column,
            descending: key.descending,
            expire_after_seconds: Seconds::new(seconds, seconds_path),
            name: options.name.map(|IndexName(name)| name),
            predicate: options
                .partial_filter_expression
                .map(|PartialFilter(sql)| sql),
            unique: matches!(options.unique, Some(Boolean(true))),
        })
    }
}

/// Whether the text is an index as `getIndexes()` shows it: a column named "key" has a direction
/// there, and no object.
fn is_whole_index(keys: &str) -> bool {
    object::<BTreeMap<String, &RawValue>>(keys, "keys").is_ok_and(|keys| {
        keys.get("key")
            .is_some_and(|key| key.get().starts_with('{'))
    })
}

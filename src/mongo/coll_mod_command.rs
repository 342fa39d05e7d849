//! `collMod` of one index: other seconds, or an index that becomes a TTL index (M6).

use super::CommandError;
use super::json::{object, present};
use super::value::{IndexKey, IndexName, NonEmptyText, Seconds, WholeSeconds};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The change of one index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CollMod {
    /// The table's name, if the command has MongoDB's `collMod`; the SQL function has the table
    /// as an argument, too.
    pub(crate) table: Option<String>,
    /// Which index is meant.
    pub(crate) index: IndexRef,
    /// When rows expire from now on; which range is allowed depends on the column.
    pub(crate) expire_after_seconds: Seconds,
}

/// The two ways to name the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IndexRef {
    /// By its name.
    Name(String),
    /// By its column and direction.
    KeyPattern {
        /// The only column of the index.
        column: String,
        /// The direction: -1 in MongoDB's `{"column": -1}`.
        descending: bool,
    },
}

/// The command. MongoDB's options beside TTL are refused by name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct CollModCommand<'a> {
    #[serde(default, deserialize_with = "present")]
    coll_mod: Option<NonEmptyText>,
    #[serde(default, deserialize_with = "present", borrow)]
    index: Option<&'a RawValue>,
}

/// The command's `index`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct CollModIndex<'a> {
    #[serde(default, deserialize_with = "present", borrow)]
    key_pattern: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "present")]
    name: Option<IndexName>,
    #[serde(default, deserialize_with = "present")]
    expire_after_seconds: Option<WholeSeconds>,
}

impl CollMod {
    /// What the command may be, for a HINT.
    pub(crate) const FIELDS: &str =
        "collMod and index, with keyPattern or name, and expireAfterSeconds";

    /// Reads the command of `ttl.coll_mod`.
    pub(crate) fn parse(command: &str) -> Result<Self, CommandError> {
        const SECONDS: &str = "index.expireAfterSeconds";
        let command: CollModCommand = object(command, "")?;
        let index = command
            .index
            .ok_or_else(|| CommandError::new("index", "is required"))?;
        let index: CollModIndex = object(index.get(), "index")?;
        let meant = match (index.key_pattern, index.name) {
            (Some(pattern), None) => {
                let key = IndexKey::parse(pattern.get(), "index.keyPattern")?;
                IndexRef::KeyPattern {
                    column: key.column,
                    descending: key.descending,
                }
            }
            (None, Some(IndexName(name))) => IndexRef::Name(name),
            (None, None) => {
                let reason = "is required, or index.name in its place";
                return Err(CommandError::new("index.keyPattern", reason));
            }
            (Some(_), Some(_)) => {
                let reason = "must not be given together with index.keyPattern";
                return Err(CommandError::new("index.name", reason));
            }
        };
        let seconds = index
            .expire_after_seconds
            .ok_or_else(|| CommandError::new(SECONDS, "is required"))?;
        Ok(Self {
            table: command.coll_mod.map(|NonEmptyText(table)| table),
            index: meant,
            expire_after_seconds: Seconds::new(seconds, SECONDS),
        })
    }
}

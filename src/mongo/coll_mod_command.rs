//! `collMod` of one index: other seconds, or an index that becomes a TTL index (M6).

use super::CommandError;
use super::json::Fields;
use super::value::{self, IndexKey, Seconds};

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

impl CollMod {
    /// What the command may be, for a HINT.
    pub(crate) const FIELDS: &str =
        "collMod and index, with keyPattern or name, and expireAfterSeconds";

    /// Reads the command of `ttl.coll_mod`. MongoDB's options beside TTL are refused by name.
    pub(crate) fn parse(command: &str) -> Result<Self, CommandError> {
        let mut command = Fields::of(command, "")?;
        let table = command.take("collMod", value::non_empty_text)?;
        let index = command.take("index", Ok)?;
        command.end()?;
        let index = index.ok_or_else(|| CommandError::new("index", "is required"))?;
        let mut index = Fields::of(index, "index")?;
        let pattern = index.take("keyPattern", Ok)?;
        let name = index.take("name", value::index_name)?;
        let seconds = Seconds::take(&mut index)?;
        index.end()?;
        let meant = match (pattern, name) {
            (Some(pattern), None) => {
                let key = IndexKey::parse(pattern, "index.keyPattern")?;
                IndexRef::KeyPattern {
                    column: key.column,
                    descending: key.descending,
                }
            }
            (None, Some(name)) => IndexRef::Name(name),
            (None, None) => {
                let reason = "is required, or index.name in its place";
                return Err(CommandError::new("index.keyPattern", reason));
            }
            (Some(_), Some(_)) => {
                let reason = "must not be given together with index.keyPattern";
                return Err(CommandError::new("index.name", reason));
            }
        };
        let expire_after_seconds =
            seconds.ok_or_else(|| CommandError::new("index.expireAfterSeconds", "is required"))?;
        Ok(Self {
            table,
            index: meant,
            expire_after_seconds,
        })
    }
}

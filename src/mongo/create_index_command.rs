//! `createIndexes` of one TTL index: its key and its options (D4, M7).

use super::CommandError;
use super::json::Fields;
use super::value::{self, IndexKey, Seconds};

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

/// Options that `getIndexes()` shows and drivers add, and that change nothing here: the format's version, how it is built,
/// the collection; and a row without a date never expires, in the index or not.
const IGNORED: [&str; 4] = ["v", "background", "ns", "sparse"];

impl CreateIndex {
    /// What the options may be, for a HINT.
    pub(crate) const OPTIONS: &str = "expireAfterSeconds, name, partialFilterExpression; v, background, ns and sparse are ignored";

    /// Reads the two arguments of `ttl.create_index`. The first may be a whole index, as
    /// `getIndexes()` shows it: `{"v": 2, "key": {"column": 1}, "expireAfterSeconds": 3600}`.
    pub(crate) fn parse(keys: &str, options: &str) -> Result<Self, CommandError> {
        if !is_whole_index(keys) {
            let key = IndexKey::parse(keys, "keys")?;
            return Self::of(Some(key), options, "options");
        }
        if !Fields::of(options, "options")?.left.is_empty() {
            let reason = "cannot be given where \"keys\" is a whole index, with its options";
            return Err(CommandError::new("options", reason));
        }
        Self::of(None, keys, "keys")
    }

    /// Reads the options at `path`, which have the key if the caller has none. Those that would change what the index does
    /// are refused, so that no client relies on them.
    fn of(key: Option<IndexKey>, options: &str, path: &str) -> Result<Self, CommandError> {
        let mut options = Fields::of(options, path)?;
        options
            .left
            .retain(|option, _| !IGNORED.contains(&option.as_str()));
        let name = options.take("name", value::index_name)?;
        let predicate = options.take("partialFilterExpression", value::predicate)?;
        let unique = options.take("unique", value::boolean)?;
        let repeated = options.take("key", Ok)?;
        let seconds = Seconds::take(&mut options)?;
        options.end()?;
        let key_path = options.path_of("key");
        let repeated = repeated
            .map(|repeated| IndexKey::parse(repeated, &key_path))
            .transpose()?;
        let key = match (key, repeated) {
            (Some(key), Some(repeated)) if key != repeated => {
                let reason = "is another key than that of \"keys\"";
                return Err(CommandError::new(&key_path, reason));
            }
            (Some(key), _) | (None, Some(key)) => key,
            (None, None) => return Err(CommandError::new(&key_path, "is required")),
        };
        let expire_after_seconds = seconds.ok_or_else(|| {
            let field = options.path_of("expireAfterSeconds");
            CommandError::new(&field, "is required; CREATE INDEX makes a plain index")
        })?;
        Ok(Self {
            column: key.column,
            descending: key.descending,
            expire_after_seconds,
            name,
            predicate,
            unique: unique.unwrap_or(false),
        })
    }
}

/// Whether the text is an index as `getIndexes()` shows it: a column named "key" has a direction
/// there, and no object.
fn is_whole_index(keys: &str) -> bool {
    Fields::of(keys, "keys").is_ok_and(|keys| {
        let key = keys.left.get("key");
        key.is_some_and(|key| key.get().starts_with('{'))
    })
}

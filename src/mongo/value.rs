//! The values in commands. Each is read from the JSON as written; a bad one is refused with a reason
//! of ours.

use super::json::{Fields, must_be};
use super::{CommandError, shortened};
use crate::policy::int32_of_number_text;

/// M7: what `expireAfterSeconds` of a TTL index may be.
const RANGE: &str = "a whole number of seconds from 0 to 2147483647";
/// C2: what it may be where it is the table's default.
const DEFAULT_RANGE: &str =
    "-1 (no default) or a whole number of seconds from 1 to 2147483647 for the table's default";
/// PostgreSQL truncates longer names, so that another one would be meant.
const NAME: &str = "a name of 1 to 63 bytes without NUL";

/// `expireAfterSeconds`: -1 or more. The allowed range depends on the column, which the caller
/// looks up: it must call one of the two functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seconds {
    value: i32,
    /// For the error: the path of the field it came from.
    field: String,
}

impl Seconds {
    /// The object's `expireAfterSeconds`, if it is given.
    pub(super) fn take(from: &mut Fields<'_>) -> Result<Option<Self>, CommandError> {
        const FIELD: &str = "expireAfterSeconds";
        let value = from.take(FIELD, |text| match int32_of_number_text(text) {
            Some(value) if value >= -1 => Ok(value),
            _ => Err(must_be(RANGE, text)),
        })?;
        let field = from.path_of(FIELD);
        Ok(value.map(|value| Self { value, field }))
    }

    /// M1: the seconds of a TTL index, 0 to 2147483647.
    pub(crate) fn for_index(&self) -> Result<i32, CommandError> {
        self.within(self.value >= 0, RANGE)
    }

    /// D4, C2: the table's default, for `{"_ts": 1}`: -1, or 1 to 2147483647.
    pub(crate) fn for_default(&self) -> Result<i32, CommandError> {
        self.within(self.value != 0, DEFAULT_RANGE)
    }

    fn within(&self, allowed: bool, range: &str) -> Result<i32, CommandError> {
        let found = self.value.to_string();
        allowed
            .then_some(self.value)
            .ok_or_else(|| CommandError::new(&self.field, must_be(range, &found)))
    }
}

/// The only key of a TTL index (M7): a column and its direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexKey {
    pub(super) column: String,
    pub(super) descending: bool,
}

impl IndexKey {
    /// Reads `{"column": 1}`, which stands at `path`.
    pub(super) fn parse(text: &str, path: &str) -> Result<Self, CommandError> {
        let mut keys = Fields::of(text, path)?.left.into_iter();
        let (column, direction) = match (keys.next(), keys.next()) {
            (Some(key), None) => key,
            (None, _) => {
                return Err(CommandError::new(path, "must name a column"));
            }
            (Some(_), Some(_)) => {
                let reason = "must name one column only: a TTL index has a single column";
                return Err(CommandError::new(path, reason));
            }
        };
        if !is_name(&column) {
            let reason = format!("must have {NAME} as its field, the column");
            return Err(CommandError::new(path, reason));
        }
        let direction = direction.get();
        let descending = match int32_of_number_text(direction) {
            Some(1) => false,
            Some(-1) => true,
            _ => {
                let reason = must_be("1 (ascending) or -1 (descending)", direction);
                return Err(CommandError::new(&format!("{path}.{column}"), reason));
            }
        };
        Ok(Self { column, descending })
    }
}

pub(super) fn index_name(text: &str) -> Result<String, String> {
    let name = string(text).ok().filter(|name| is_name(name));
    name.ok_or_else(|| must_be(NAME, text))
}

pub(super) fn boolean(text: &str) -> Result<bool, String> {
    serde_json::from_str(text).map_err(|_| must_be("true or false", text))
}

/// A string that says something.
pub(super) fn non_empty_text(text: &str) -> Result<String, String> {
    filled(string(text)?)
}

/// M4: the predicate of a partial index, in SQL.
pub(super) fn predicate(text: &str) -> Result<String, String> {
    if text.starts_with('{') {
        return Err(must_be(
            "an SQL predicate as a string, such as \"level = 'debug'\"",
            &format!("a MongoDB query: {}", shortened(text)),
        ));
    }
    let predicate = string(text).map_err(|_| must_be("an SQL predicate as a string", text))?;
    filled(predicate)
}

fn string(text: &str) -> Result<String, String> {
    serde_json::from_str(text).map_err(|_| must_be("a string", text))
}

fn filled(text: String) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("must not be blank".into());
    }
    if text.contains('\0') {
        return Err("must not contain a NUL character".into());
    }
    Ok(text)
}

fn is_name(name: &str) -> bool {
    (1..=63).contains(&name.len()) && !name.contains('\0')
}

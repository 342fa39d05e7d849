//! The values in commands. Each checks the JSON as written; a bad one is refused with a reason
//! of ours.

use super::json::{checked, must_be, object};
use super::{CommandError, shortened};
use crate::policy::int32_of_number_text;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// M7: what `expireAfterSeconds` of a TTL index may be.
const RANGE: &str = "a whole number of seconds from 0 to 2147483647";
/// C2: what it may be where it is the table's default.
const DEFAULT_RANGE: &str =
    "-1 (no default) or a whole number of seconds from 1 to 2147483647 for the table's default";
/// PostgreSQL truncates longer names, so that another one would be meant.
const NAME: &str = "a name of 1 to 63 bytes without NUL";

/// `expireAfterSeconds`: -1 or more. The allowed range depends on the column, which the caller
/// looks up: it must call one of the two functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seconds {
    value: i32,
    /// For the error: the path of the field it came from.
    field: &'static str,
}

impl Seconds {
    pub(super) fn new(value: WholeSeconds, field: &'static str) -> Self {
        let WholeSeconds(value) = value;
        Self { value, field }
    }

    /// M1: the seconds of a TTL index, 0 to 2147483647.
    pub(crate) fn for_index(self) -> Result<i32, CommandError> {
        self.within(self.value >= 0, RANGE)
    }

    /// D4, C2: the table's default, for `{"_ts": 1}`: -1, or 1 to 2147483647.
    pub(crate) fn for_default(self) -> Result<i32, CommandError> {
        self.within(self.value != 0, DEFAULT_RANGE)
    }

    fn within(self, allowed: bool, range: &str) -> Result<i32, CommandError> {
        let found = self.value.to_string();
        allowed
            .then_some(self.value)
            .ok_or_else(|| CommandError::new(self.field, must_be(range, &found)))
    }
}

/// The number in [`Seconds`], as read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WholeSeconds(i32);

impl<'de> Deserialize<'de> for WholeSeconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        checked(deserializer, |text| match int32_of_number_text(text) {
            Some(value) if value >= -1 => Ok(Self(value)),
            _ => Err(must_be(RANGE, text)),
        })
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
        let keys: BTreeMap<String, &RawValue> = object(text, path)?;
        let mut keys = keys.into_iter();
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

/// The name of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexName(pub(super) String);

impl<'de> Deserialize<'de> for IndexName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        checked(deserializer, |text| {
            let name = string(text).map_err(|_| must_be(NAME, text))?;
            is_name(&name)
                .then_some(Self(name))
                .ok_or_else(|| must_be(NAME, text))
        })
    }
}

/// True or false.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Boolean(pub(super) bool);

impl<'de> Deserialize<'de> for Boolean {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        checked(deserializer, |text| match text {
            "true" => Ok(Self(true)),
            "false" => Ok(Self(false)),
            _ => Err(must_be("true or false", text)),
        })
    }
}

/// A string that says something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NonEmptyText(pub(super) String);

impl<'de> Deserialize<'de> for NonEmptyText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        checked(deserializer, |text| filled(string(text)?).map(Self))
    }
}

/// M4: the predicate of a partial index, in SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PartialFilter(pub(super) String);

impl<'de> Deserialize<'de> for PartialFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        checked(deserializer, |text| {
            if text.starts_with('{') {
                return Err(must_be(
                    "an SQL predicate as a string, such as \"level = 'debug'\"",
                    &format!("a MongoDB query: {}", shortened(text)),
                ));
            }
            let predicate =
                string(text).map_err(|_| must_be("an SQL predicate as a string", text))?;
            filled(predicate).map(Self)
        })
    }
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

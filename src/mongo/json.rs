//! Reading one JSON object, so that every error has the path of a field.

use super::{CommandError, shortened};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::value::RawValue;

/// Reads the object that stands at `path`; the empty path is the command itself.
///
/// Nested objects are read as [`RawValue`] and passed to this function in turn: serde alone
/// would accept an array for a struct, and would call a large number in an object's place out of
/// range.
pub(super) fn object<'a, T: Deserialize<'a>>(text: &'a str, path: &str) -> Result<T, CommandError> {
    let name = if path.is_empty() { "command" } else { path };
    let raw: &RawValue = serde_json::from_str(text).map_err(|error| {
        CommandError::new(name, format!("is not valid JSON: {}", message(&error)))
    })?;
    let text = raw.get();
    if !text.starts_with('{') {
        return Err(CommandError::new(name, must_be("a JSON object", text)));
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let at = error.path();
        let message = message(error.inner());
        let (field, reason) = if let Some(field) = duplicate(&message) {
            (Some(field.to_owned()), "is given twice")
        } else if message.starts_with("unknown field ") {
            (Some(at.to_string()), "is not supported")
        } else {
            let has_field = at.iter().len() > 0;
            (has_field.then(|| at.to_string()), message.as_str())
        };
        match field {
            None => CommandError::new(name, reason),
            Some(field) if path.is_empty() => CommandError::new(&field, reason),
            Some(field) => CommandError::new(&format!("{path}.{field}"), reason),
        }
    })
}

/// `must be X, not Y`, where Y is the value found.
pub(super) fn must_be(expected: &str, found: &str) -> String {
    format!("must be {expected}, not {}", shortened(found))
}

/// For `deserialize_with` of an optional field: it may be absent, but not null.
pub(super) fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// For the types of values: the value as written, checked by `check`.
pub(super) fn checked<'de, D, T>(
    deserializer: D,
    check: impl FnOnce(&'de str) -> Result<T, String>,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
{
    let raw = <&RawValue>::deserialize(deserializer)?;
    check(raw.get()).map_err(D::Error::custom)
}

/// The field that is there twice. It is not in the path, because serde notices it only after
/// reading its name.
fn duplicate(message: &str) -> Option<&str> {
    message.strip_prefix("duplicate field `")?.strip_suffix('`')
}

/// serde's message without the position: the caller of an SQL function does not know that text,
/// as jsonb is printed again.
fn message(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    if text.ends_with(&place) {
        text.truncate(text.len() - place.len());
    }
    text
}

//! Reading one JSON object, so that every error has the path of a field.

use super::{CommandError, shortened};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The fields of an object, each as it is written: a number is exact, whatever its size. The text is that of a jsonb, so
/// that no field is there twice.
pub(super) struct Fields<'a> {
    path: &'a str,
    /// Those that nothing has taken.
    pub(super) left: BTreeMap<String, &'a RawValue>,
}

impl<'a> Fields<'a> {
    /// Those of the object that stands at `path`; the empty path is the command itself.
    pub(super) fn of(text: &'a str, path: &'a str) -> Result<Self, CommandError> {
        let name = if path.is_empty() { "command" } else { path };
        let refused = |_| CommandError::new(name, must_be("a JSON object", text));
        let left = serde_json::from_str(text).map_err(refused)?;
        Ok(Self { path, left })
    }

    /// The field's value, if it is given; `read` says what is wrong with it.
    pub(super) fn take<T>(
        &mut self,
        field: &str,
        read: impl FnOnce(&'a str) -> Result<T, String>,
    ) -> Result<Option<T>, CommandError> {
        let value = self.left.remove(field).map(|value| read(value.get()));
        value
            .transpose()
            .map_err(|reason| CommandError::new(&self.path_of(field), reason))
    }

    /// Refuses fields that are left.
    pub(super) fn end(&self) -> Result<(), CommandError> {
        match self.left.keys().next() {
            Some(field) => Err(CommandError::new(&self.path_of(field), "is not supported")),
            None => Ok(()),
        }
    }

    pub(super) fn path_of(&self, field: &str) -> String {
        match self.path {
            "" => field.to_owned(),
            path => format!("{path}.{field}"),
        }
    }
}

/// `must be X, not Y`, where Y is the value found.
pub(super) fn must_be(expected: &str, found: &str) -> String {
    format!("must be {expected}, not {}", shortened(found))
}

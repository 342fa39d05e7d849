//! MongoDB's commands about TTL indexes, as `ttl.create_index` and
//! `ttl.coll_mod` take them: read from JSON (D4, M6, M7).
//!
//! Only the form is checked here. Whether the column or index exists, and which range of seconds
//! applies, is up to the caller.

mod coll_mod_command;
mod create_index_command;
mod json;
mod value;

pub(crate) use coll_mod_command::{CollMod, IndexRef};
pub(crate) use create_index_command::CreateIndex;

use std::fmt;

#[cfg(test)]
mod coll_mod_command_test;
#[cfg(test)]
mod create_index_any_test;
#[cfg(test)]
mod create_index_command_test;

/// Why a command was refused. Every error names the field it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandError {
    /// The field's path: `options.expireAfterSeconds`, `index.keyPattern`, `keys`.
    pub(crate) field: String,
    /// What is wrong with it, as a continuation of the field's name: `must be a string`.
    pub(crate) reason: String,
}

impl CommandError {
    /// The field's name is shortened: it can be as long as a jsonb.
    pub(super) fn new(field: &str, reason: impl Into<String>) -> Self {
        Self {
            field: shortened(field),
            reason: reason.into(),
        }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" {}", self.field, self.reason)
    }
}

/// The text, shortened for an error message: jsonb prints 1e400 with 401 digits.
fn shortened(text: &str) -> String {
    // Enough for the longest path of ours with a column's name of 63 bytes.
    const LONGEST: usize = 100;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}... ({} characters)", &text[..end], text.chars().count()),
        None => text.to_owned(),
    }
}

//! A problem that keeps a table's TTL from working: in words, and the statement that ends it.

use crate::pg::catalog::{self, quote_literal};
use pgrx::pg_sys;

/// What `ttl.problems` says of a table, and what `ttl.check` says to do about it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::api) struct Problem {
    pub(in crate::api) text: String,
    /// SQL, or where no statement helps, a sentence.
    pub(in crate::api) to_do: Option<String>,
}

impl Problem {
    pub(in crate::api) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            to_do: None,
        }
    }

    pub(in crate::api) fn with_statement(mut self, statement: impl Into<String>) -> Self {
        self.to_do = Some(statement.into());
        self
    }
}

/// A look at `ttl.stats`, for errors whose cause is the user's.
pub(in crate::api) fn look_at_last_error(relid: pg_sys::Oid) -> String {
    let table = quote_literal(&catalog::qualified_name(relid));
    format!("SELECT last_error, last_error_at FROM ttl.stats WHERE relation = {table}::regclass;")
}

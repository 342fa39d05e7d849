//! The text of one of the extension's own queries, and what it may be about.

use pgrx::pg_sys;

/// The text of a query, and the table that it is about, where the text does not name it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sql<'a> {
    pub(super) text: &'a str,
    pub(super) table: Option<pg_sys::Oid>,
    pub(super) deletes: bool,
    /// The tables that the text's names lead to; `None`: whatever they lead to.
    pub(super) named: Option<&'a [pg_sys::Oid]>,
}

impl<'a> Sql<'a> {
    /// A SELECT without FROM, whose columns are those of this table alone, without the tables that
    /// inherit from it. The caller has locked the table.
    pub(crate) fn over(table: pg_sys::Oid, text: &'a str) -> Self {
        Self {
            text,
            table: Some(table),
            deletes: false,
            named: None,
        }
    }

    /// A statement that names these tables. If a name leads to another one, since a table or a schema
    /// was renamed, the statement is not run: an error (55000).
    pub(crate) fn naming(tables: &'a [pg_sys::Oid], text: &'a str) -> Self {
        Self {
            named: Some(tables),
            ..Self::from(text)
        }
    }

    /// If there are any, its sub-selects may name these tables only, as in [`Self::naming`], and only as
    /// long as they are the current user's.
    pub(crate) fn among(self, tables: &'a [pg_sys::Oid]) -> Self {
        Self {
            named: Some(tables).filter(|tables| !tables.is_empty()),
            ..self
        }
    }

    /// Deletes the rows that such a SELECT, of constants only, would return.
    pub(crate) fn delete_from(table: pg_sys::Oid, text: &'a str) -> Self {
        Self {
            deletes: true,
            ..Self::over(table, text)
        }
    }
}

impl<'a> From<&'a str> for Sql<'a> {
    /// A statement that names its tables.
    fn from(text: &'a str) -> Self {
        Self {
            text,
            table: None,
            deletes: false,
            named: None,
        }
    }
}

impl<'a> From<&'a String> for Sql<'a> {
    fn from(text: &'a String) -> Self {
        text.as_str().into()
    }
}

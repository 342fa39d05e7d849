//! Predicates of TTL indexes: read from the catalog, or parsed from a user's text without being
//! run.

use super::ttl_index::{self, UnfitIndex};
use crate::error::Error;
use crate::pg::catalog::index_entry::{self, IndexRow};
use crate::pg::catalog::stored_tree::{self, StoredTree};
use crate::pg::catalog::syntax::Node;
use crate::pg::session::locks;
use pgrx::{PgSqlErrorCode, pg_sys};

/// A predicate in which all functions are trusted ([`ttl_index::trusted`]): only functions of
/// the server's and in C are called to simplify it.
pub(crate) type Predicate = StoredTree;

/// An expression in which all functions are trusted, as in a [`Predicate`].
pub(crate) type TrustedExpression = StoredTree;

/// The predicate of an index as SQL.
///
/// PostgreSQL locks the table for that, and other types whose columns the predicate names;
/// monitoring functions must not wait for these locks ([`crate::pg::session::look`]).
pub(crate) fn written(index: pg_sys::Oid) -> Result<String, Error> {
    as_sql(index, &|entry| entry.stored_predicate())
}

/// The first expression of an index as SQL; as [`written`].
pub(crate) fn written_key(index: pg_sys::Oid) -> Result<String, Error> {
    as_sql(index, &|entry| entry.first_expression().map(StoredTree::of))
}

fn as_sql(
    index: pg_sys::Oid,
    tree: &dyn Fn(&IndexRow<'_>) -> Option<StoredTree>,
) -> Result<String, Error> {
    let gone = || {
        let code = PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT;
        Error::new(code, "the index does not exist")
    };
    let stored = index_entry::with(index, |entry| tree(entry).map(|it| (entry.indrelid, it)));
    let (table, stored) = stored.flatten().ok_or_else(gone)?;
    if !locks::try_relation(table, pg_sys::AccessShareLock) {
        let code = PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE;
        return Err(Error::new(code, "the table is locked"));
    }
    let written = stored.to_sql(table);
    locks::release(table, pg_sys::AccessShareLock);
    written.ok_or_else(gone)
}

/// Why a text cannot be a TTL index's predicate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UnusablePredicate {
    /// It is no expression, or more than one.
    NotAnExpression,
    /// PostgreSQL has no sub-queries in predicates of indexes.
    SubQuery,
    /// The filter must not evaluate it.
    Unfit(UnfitIndex),
}

/// Parses and analyzes an expression on rows of the table; `None` if it is none, or uses what it
/// must not. Raises the parser's errors.
pub(crate) fn analyze_expression(relid: pg_sys::Oid, text: &str) -> Option<TrustedExpression> {
    stored_tree::analyzed(relid, &format!("{text} IS NULL"), |query| {
        let condition = query.node(|it| &it.jointree)?.node(|it| &it.quals)?;
        let test = condition.cast::<pg_sys::NullTest>()?;
        let tree = test.node(|it| &it.arg)?;
        // SAFETY: every expression node begins with the fields of `Node`.
        let tree = unsafe { Node::new(tree.as_ptr().cast::<pg_sys::Node>()) }?;
        ttl_index::trusted(tree).ok()
    })
    .flatten()
}

/// Parses and analyzes the condition on rows of the table. Raises the parser's errors.
pub(crate) fn analyze(relid: pg_sys::Oid, text: &str) -> Result<Predicate, UnusablePredicate> {
    let analyzed = stored_tree::analyzed(relid, text, |query| {
        if query.hasSubLinks {
            return Some(Err(UnusablePredicate::SubQuery));
        }
        let condition = query.node(|it| &it.jointree)?.node(|it| &it.quals)?;
        Some(ttl_index::trusted(condition).map_err(UnusablePredicate::Unfit))
    });
    analyzed
        .flatten()
        .unwrap_or(Err(UnusablePredicate::NotAnExpression))
}

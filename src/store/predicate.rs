//! Predicates of TTL indexes: read from the catalog, or parsed from a user's text without being
//! run.

use super::ttl_index::{self, Unfit};
use crate::error::Error;
use crate::pg::catalog::index_entry::{self, IndexRow};
use crate::pg::catalog::stored_tree::{self, StoredTree};
use crate::pg::catalog::syntax::Node;
use crate::pg::session::locks;
use pgrx::{PgSqlErrorCode, pg_sys};

/// A predicate in which all functions are trusted ([`ttl_index::trusted_predicate`]): only functions of
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

/// Parses and analyzes an expression on rows of the table; `None` if it is none, or uses what it
/// must not. Raises the parser's errors.
pub(crate) fn analyze_expression(relid: pg_sys::Oid, text: &str) -> Option<TrustedExpression> {
    stored_tree::analyzed(relid, &format!("{text} IS NULL"), |query| {
        let condition = query.node(|it| &it.jointree)?.node(|it| &it.quals)?;
        let test = condition.cast::<pg_sys::NullTest>()?;
        let tree = test.node(|it| &it.arg)?;
        // SAFETY: every expression node begins with the fields of `Node`.
        let tree = unsafe { Node::new(tree.as_ptr().cast::<pg_sys::Node>()) }?;
        ttl_index::trusted_predicate(tree).ok()
    })
    .flatten()
}

/// Parses and analyzes the condition on rows of the table. Raises the parser's errors. `remedy` is for a text that is no
/// condition.
pub(crate) fn analyze(
    relid: pg_sys::Oid,
    text: &str,
    remedy: &'static str,
) -> Result<Predicate, Unfit> {
    let refused = |code, reason: &str| Unfit {
        code,
        reason: reason.to_owned(),
        remedy,
    };
    let analyzed = stored_tree::analyzed(relid, text, |query| {
        // PostgreSQL has none in predicates of indexes.
        if query.hasSubLinks {
            let code = PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED;
            return Some(Err(refused(code, "has a sub-query")));
        }
        let condition = query.node(|it| &it.jointree)?.node(|it| &it.quals)?;
        Some(ttl_index::trusted_predicate(condition))
    });
    analyzed.flatten().unwrap_or_else(|| {
        let code = PgSqlErrorCode::ERRCODE_SYNTAX_ERROR;
        Err(refused(code, "is not a single expression"))
    })
}

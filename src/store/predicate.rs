//! Predicates of TTL indexes: read from the catalog, or parsed from a user's text without being
//! run.

use crate::error::Error;
use crate::pg::catalog::index_entry::{self, IndexRow};
use crate::pg::catalog::stored_tree::{self, StoredTree};
use crate::pg::catalog::syntax::Node;
use crate::pg::catalog::{self, functions_used, roles};
use crate::pg::exec::guarded_planning;
use crate::pg::session::locks;
use pgrx::{PgSqlErrorCode, pg_sys};

/// Why an index cannot be a TTL index, or a condition its predicate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unfit {
    pub(crate) code: PgSqlErrorCode,
    /// A clause to "It".
    pub(crate) reason: String,
    /// What to do instead.
    pub(crate) remedy: &'static str,
}

impl Unfit {
    pub(super) fn new(reason: impl Into<String>, remedy: &'static str) -> Self {
        Self {
            code: PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
            reason: reason.into(),
            remedy,
        }
    }

    /// Whether the index is on a column of another type.
    pub(crate) fn is_column_type(&self) -> bool {
        self.code == PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH
    }
}

pub(super) const TRUSTED_PREDICATE: &str = "Every reader of the table runs the predicate with rights of their own: use built-in functions, and columns.";

/// A predicate in which all functions are trusted ([`trusted_predicate`]): only functions of
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

/// [`stored_tree::analyzed`], for anyone: analysis reads constants, which runs the CHECK of a domain in an array, for example. None of a
/// type of the table owner's that would run code is read for others (42501).
pub(crate) fn analyzed<T>(
    relid: pg_sys::Oid,
    condition: &str,
    read: impl FnOnce(Node<'_, pg_sys::Query>) -> T,
) -> Option<T> {
    let is_owner = catalog::owner(relid) == Some(roles::current_user());
    let guarded = (!is_owner).then(|| guarded_planning::enter(relid));
    let found = stored_tree::analyzed(relid, condition, read);
    if let Some(guarded) = guarded {
        guarded_planning::leave(guarded);
    }
    found
}

/// Parses and analyzes an expression on rows of the table; `None` if it is none, or uses what it
/// must not. Raises the parser's errors.
pub(crate) fn analyze_expression(relid: pg_sys::Oid, text: &str) -> Option<TrustedExpression> {
    analyzed(relid, &format!("{text} IS NULL"), |query| {
        let condition = query.node(|it| &it.jointree)?.node(|it| &it.quals)?;
        let test = condition.cast::<pg_sys::NullTest>()?;
        let tree = test.node(|it| &it.arg)?;
        // SAFETY: every expression node begins with the fields of `Node`.
        let tree = unsafe { Node::new(tree.as_ptr().cast::<pg_sys::Node>()) }?;
        trusted_predicate(tree).ok()
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
    let analyzed = analyzed(relid, text, |query| {
        // PostgreSQL has none in predicates of indexes.
        if query.hasSubLinks {
            let code = PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED;
            return Some(Err(refused(code, "has a sub-query")));
        }
        let condition = query.node(|it| &it.jointree)?.node(|it| &it.quals)?;
        Some(trusted_predicate(condition))
    });
    analyzed.flatten().unwrap_or_else(|| {
        let code = PgSqlErrorCode::ERRCODE_SYNTAX_ERROR;
        Err(refused(code, "is not a single expression"))
    })
}

/// The condition as a predicate of a TTL index.
fn trusted_predicate(tree: Node<'_>) -> Result<Predicate, Unfit> {
    trusted(tree, "", TRUSTED_PREDICATE)
}

/// An expression on the columns of one table. It may call only functions that superusers have
/// created: the filter runs it with the privileges of the user who reads the table. Otherwise `what` begins the reason.
pub(super) fn trusted(
    tree: Node<'_>,
    what: &str,
    remedy: &'static str,
) -> Result<Predicate, Unfit> {
    if let Some(name) = functions_used::untrusted(tree) {
        let reason = format!("{what}uses {name}, which may have been created by a non-superuser");
        return Err(Unfit::new(reason, remedy));
    }
    if tree.columns().contains(&0) {
        return Err(Unfit::new(
            format!("{what}is on the row as a whole"),
            remedy,
        ));
    }
    Ok(Predicate::of(tree))
}

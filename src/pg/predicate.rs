//! A predicate that a user writes, analyzed without being run.

use super::ttl_index::{self, Unfit};
use super::{catalog, lists, nodes};
use pgrx::pg_sys::{self, Node, NodeTag};
use std::ffi::CString;

/// Why a text cannot be the predicate of a TTL index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// Something else than an expression, or more.
    NotAnExpression,
    /// PostgreSQL has none in predicates of indexes.
    SubQuery,
    /// What the filter must not evaluate.
    Unfit(Unfit),
}

/// The condition on rows of the table, as the planner wants it, as a node tree's text.
/// Raises what the parser raises.
pub(crate) fn analyze(relid: pg_sys::Oid, text: &str) -> Result<CString, Unusable> {
    let query = analyzed(relid, text).ok_or(Unusable::NotAnExpression)?;
    // SAFETY: a query that was analyzed just now, on one table.
    unsafe {
        if (*query).hasSubLinks {
            return Err(Unusable::SubQuery);
        }
        ttl_index::simplified((*(*query).jointree).quals).map_err(Unusable::Unfit)
    }
}

/// A query with the condition; `None` if the text is not a single expression.
fn analyzed(relid: pg_sys::Oid, text: &str) -> Option<*mut pg_sys::Query> {
    let bare = CString::new(text).ok()?;
    // SAFETY: the parser copies what it keeps; its trees are of the types named.
    unsafe {
        let trees = pg_sys::raw_parser(bare.as_ptr(), pg_sys::RawParseMode::RAW_PARSE_PLPGSQL_EXPR);
        let statement = (*lists::nth::<pg_sys::RawStmt>(trees, 0)?).stmt;
        if !is_expression(statement) {
            return None;
        }
        // On lines of its own: it may end with a comment.
        let table = catalog::qualified_name(relid);
        let query = CString::new(format!("SELECT FROM ONLY {table} WHERE (\n{text}\n)")).ok()?;
        let trees = pg_sys::raw_parser(query.as_ptr(), pg_sys::RawParseMode::RAW_PARSE_DEFAULT);
        let none = core::ptr::null_mut();
        let statement = lists::nth::<pg_sys::RawStmt>(trees, 0)?;
        Some(pg_sys::parse_analyze_fixedparams(
            statement,
            query.as_ptr(),
            core::ptr::null(),
            0,
            none,
        ))
    }
}

/// Whether what was parsed as an expression is one, and nothing that could follow it in
/// a SELECT.
///
/// # Safety
/// A statement of the parser.
unsafe fn is_expression(statement: *mut Node) -> bool {
    // SAFETY: the tag tells the type.
    unsafe {
        if nodes::tag(statement) != Some(NodeTag::T_SelectStmt) {
            return false;
        }
        let select = &*statement.cast::<pg_sys::SelectStmt>();
        let lists = [
            select.distinctClause,
            select.fromClause,
            select.groupClause,
            select.windowClause,
            select.valuesLists,
            select.sortClause,
            select.lockingClause,
        ];
        let others = [
            select.whereClause,
            select.havingClause,
            select.limitOffset,
            select.limitCount,
        ];
        let only = lists::nth::<pg_sys::ResTarget>(select.targetList, 0);
        lists::len(select.targetList) == 1
            && only.is_some_and(|target| (*target).name.is_null())
            && lists.iter().all(|list| list.is_null())
            && others.iter().all(|node| node.is_null())
    }
}

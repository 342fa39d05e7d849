//! Predicates of TTL indexes: read from the catalog, or parsed from a user's text without being
//! run.

use super::ttl_index::{self, Unfit};
use crate::error::Error;
use crate::pg::{catalog, encoding, index_entry, lists, locks, nodes};
use pgrx::PgSqlErrorCode;
use pgrx::pg_sys::{self, Expr, Node, NodeTag};
use std::cell::OnceCell;
use std::ffi::{CStr, CString};
use std::hash::{Hash, Hasher};

/// A predicate as the text of a node tree, in which all functions are trusted.
///
/// It is simplified on first use, not when it is read: that computes its constants, which can
/// take long, and whoever looks at all tables of a database (a worker, `ttl.tables`) must not
/// wait for it.
#[derive(Debug, Clone)]
pub(crate) struct Predicate {
    text: CString,
    simplified: OnceCell<CString>,
}

impl PartialEq for Predicate {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Predicate {}

impl Hash for Predicate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl Predicate {
    /// The text comes from PostgreSQL's `nodeToString`.
    pub(crate) fn new(text: CString) -> Self {
        Self {
            text,
            simplified: OnceCell::new(),
        }
    }

    /// Simplified as PostgreSQL does before it compares it with a query's conditions, for range
    /// table entry `varno`.
    pub(crate) fn simplified(&self, varno: u32) -> *mut Expr {
        let text = match self.simplified.get() {
            Some(text) => text,
            // The functions called may come back here: hold no borrow meanwhile.
            None => {
                let text = self.simplify();
                self.simplified.get_or_init(|| text)
            }
        };
        // SAFETY: written by `simplify`.
        unsafe { nodes::from_text(text, varno) }
    }

    /// Whether it equals the tree of an index on the same table, as both are stored.
    ///
    /// # Safety
    /// `tree` is an expression.
    pub(crate) unsafe fn is_stored_as(&self, tree: *mut Node) -> bool {
        // SAFETY: as required of the caller; the text is that of an expression.
        unsafe {
            nodes::same(
                pg_sys::stringToNode(self.text.as_ptr()).cast::<Node>(),
                tree,
            )
        }
    }

    fn simplify(&self) -> CString {
        // SAFETY: the text of an expression in the catalog; only functions of the server's
        // and in C are called to simplify it.
        unsafe {
            let tree = pg_sys::stringToNode(self.text.as_ptr()).cast::<Node>();
            let simple = pg_sys::eval_const_expressions(core::ptr::null_mut(), tree);
            let simple = pg_sys::canonicalize_qual(simple.cast(), false);
            CStr::from_ptr(pg_sys::nodeToString(simple.cast())).to_owned()
        }
    }

    /// Whether both are true of the same rows, as far as PostgreSQL can tell.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        // SAFETY: trees of expressions.
        unsafe { nodes::same(self.simplified(1), other.simplified(1)) }
    }

    /// The predicate for a table that inherits from the index's table: columns have the same
    /// names but other numbers. `None` if one is missing.
    pub(crate) fn translate(&self, from: pg_sys::Oid, to: pg_sys::Oid) -> Option<Self> {
        // SAFETY: the text of a node tree; the map has an entry for each column it names.
        unsafe {
            let tree = pg_sys::stringToNode(self.text.as_ptr()).cast::<Node>();
            let mut used = core::ptr::null_mut();
            pg_sys::pull_varattnos(tree, 1, &mut used);
            let mut numbers: Vec<i16> = vec![];
            let mut member = -1;
            loop {
                member = pg_sys::bms_next_member(used, member);
                if member < 0 {
                    break;
                }
                let attno =
                    i16::try_from(member + pg_sys::FirstLowInvalidHeapAttributeNumber).ok()?;
                if attno <= 0 {
                    continue;
                }
                let place = usize::from(attno.cast_unsigned()) - 1;
                numbers.resize(numbers.len().max(place + 1), 0);
                let name = catalog::column_name(from, attno);
                numbers[place] = catalog::attribute(to, &name)?.attno;
            }
            let map = pg_sys::AttrMap {
                attnums: numbers.as_mut_ptr(),
                maplen: i32::try_from(numbers.len()).ok()?,
            };
            let mut whole_row = false;
            let none = pg_sys::InvalidOid;
            let tree = pg_sys::map_variable_attnos(tree, 1, 0, &map, none, &mut whole_row);
            let text = CStr::from_ptr(pg_sys::nodeToString(tree.cast())).to_owned();
            Some(Self::new(text))
        }
    }
}

/// The predicate of an index as SQL.
///
/// PostgreSQL locks the table for that, and other types whose columns the predicate names;
/// whoever looks must not wait for these locks ([`crate::pg::look`]).
pub(crate) fn written(index: pg_sys::Oid) -> Result<String, Error> {
    let gone = || {
        let code = PgSqlErrorCode::ERRCODE_UNDEFINED_OBJECT;
        Error::new(code, "the index does not exist")
    };
    let text = index_entry::with(index, |entry| {
        entry.predicate_text().map(|text| (entry.indrelid, text))
    });
    let (table, text) = text.flatten().ok_or_else(gone)?;
    if !locks::try_relation(table, pg_sys::AccessShareLock) {
        let code = PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE;
        return Err(Error::new(code, "the table is locked"));
    }
    // SAFETY: the text of an expression on that table; a text is returned, or NULL if the
    // table is gone.
    let written = unsafe {
        let text = pg_sys::cstring_to_text(text.as_ptr());
        let arguments = [Some(pg_sys::Datum::from(text)), Some(table.into())];
        pgrx::direct_function_call_as_datum(pg_sys::pg_get_expr, &arguments)
            .map(|datum| encoding::from_datum(datum))
    };
    locks::release(table, pg_sys::AccessShareLock);
    written.ok_or_else(gone)
}

/// Why a text cannot be a TTL index's predicate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// It is no expression, or more than one.
    NotAnExpression,
    /// PostgreSQL has no sub-queries in predicates of indexes.
    SubQuery,
    /// The filter must not evaluate it.
    Unfit(Unfit),
}

/// Parses and analyzes the condition on rows of the table. Raises the parser's errors.
pub(crate) fn analyze(relid: pg_sys::Oid, text: &str) -> Result<Predicate, Unusable> {
    let query = analyzed(relid, text).ok_or(Unusable::NotAnExpression)?;
    // SAFETY: a query that was analyzed just now, on one table.
    unsafe {
        if (*query).hasSubLinks {
            return Err(Unusable::SubQuery);
        }
        ttl_index::trusted((*(*query).jointree).quals).map_err(Unusable::Unfit)
    }
}

/// A query with the condition; `None` if the text is not a single expression.
fn analyzed(relid: pg_sys::Oid, text: &str) -> Option<*mut pg_sys::Query> {
    let bare = encoding::to_server(text)?;
    // SAFETY: the parser copies what it keeps; its trees are of the types named.
    unsafe {
        let trees = pg_sys::raw_parser(bare.as_ptr(), pg_sys::RawParseMode::RAW_PARSE_PLPGSQL_EXPR);
        let statement = (*lists::nth::<pg_sys::RawStmt>(trees, 0)?).stmt;
        if !is_expression(statement) {
            return None;
        }
        // On a line of its own: it may end with a comment.
        let table = catalog::qualified_name(relid);
        let query = encoding::query(&format!("SELECT FROM ONLY {table} WHERE (\n{text}\n)"));
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

/// Whether the parsed statement holds a single expression, and none of what may follow it in a
/// SELECT.
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

//! Analysis of the extension's own queries ([`super::query`]), without SPI.

use crate::error::Error;
use crate::pg::abi::lists;
use crate::pg::catalog::syntax::Node;
use crate::pg::catalog::{self, functions_used, roles};
use core::ffi::c_int;
use pgrx::pg_sys::{self, CmdType};
use std::ffi::CString;

/// The parser's tree of one statement.
pub(in crate::pg) fn parse(text: &CString) -> *mut pg_sys::RawStmt {
    // SAFETY: a C string; the parser raises a syntax error rather than return an empty list.
    unsafe {
        let trees = pg_sys::raw_parser(text.as_ptr(), pg_sys::RawParseMode::RAW_PARSE_DEFAULT);
        lists::nth::<pg_sys::RawStmt>(trees, 0).unwrap_or(core::ptr::null_mut())
    }
}

/// Analyzes and rewrites a SELECT without FROM over the table, as `transformRuleStmt` of PostgreSQL
/// analyzes a rule's actions over OLD and NEW: the table is in the parser's namespace before the
/// statement is.
///
/// # Safety
/// Within a transaction that has locked the table.
pub(super) unsafe fn analyze_over(
    table: pg_sys::Oid,
    query: &Sql<'_>,
    text: &CString,
    types: &[pg_sys::Oid],
) -> *mut pg_sys::List {
    // SAFETY: the relation stays open until the analysis has ended, and locked as required of the
    // caller. The tree is a SelectStmt of our own text.
    unsafe {
        let lock = match query.deletes {
            // As a statement that names its target takes, whatever the caller has.
            true => pg_sys::RowExclusiveLock,
            false => pg_sys::AccessShareLock,
        };
        let relation = pg_sys::table_open(table, lock.cast_signed());
        let state = pg_sys::make_parsestate(core::ptr::null_mut());
        (*state).p_sourcetext = text.as_ptr();
        let count = c_int::try_from(types.len()).unwrap_or(0);
        pg_sys::setup_parse_fixed_parameters(state, types.as_ptr(), count);
        let item = pg_sys::addRangeTableEntryForRelation(
            state,
            relation,
            lock.cast_signed(),
            core::ptr::null_mut(),
            false,
            true,
        );
        pg_sys::addNSItemToQuery(state, item, true, true, true);
        let analyzed = pg_sys::transformTopLevelStmt(state, parse(text));
        if query.deletes {
            become_delete(analyzed);
        }
        check_conditions(analyzed);
        if let Some(tables) = query.named
            && let Some(conditions) = (*analyzed).jointree.as_ref()
        {
            check_sub_selects(conditions.quals, tables);
        }
        pg_sys::free_parsestate(state);
        pg_sys::table_close(relation, pg_sys::NoLock.cast_signed());
        pg_sys::pg_rewrite_query(analyzed)
    }
}

/// As [`check_names`], of the sub-selects in a condition: EXISTS, also in AND, OR and NOT. Their
/// relations are tables of the current user, not partitioned, nor partitions of others' tables: what is locked from here on keeps its owner, and
/// rewriting and planning run the code of no other.
///
/// # Safety
/// An analyzed condition, before it is rewritten.
unsafe fn check_sub_selects(condition: *mut pg_sys::Node, tables: &[pg_sys::Oid]) {
    // SAFETY: as required of the caller; a node's tag tells its type.
    unsafe {
        let Some(node) = condition.as_ref() else {
            return;
        };
        match node.type_ {
            pg_sys::NodeTag::T_BoolExpr => {
                let parts = (*condition.cast::<pg_sys::BoolExpr>()).args;
                lists::iter::<pg_sys::Node>(parts).for_each(|part| check_sub_selects(part, tables));
            }
            pg_sys::NodeTag::T_SubLink => {
                let select = (*condition.cast::<pg_sys::SubLink>()).subselect;
                check_names(select.cast(), tables);
                check_conditions(select.cast());
                check_owners(select.cast());
            }
            _ => {}
        }
    }
}

/// Raises an error if the statement has a relation that is partitioned, or not the current user's.
///
/// # Safety
/// As [`check_names`].
unsafe fn check_owners(query: *mut pg_sys::Query) {
    let user = roles::current_user();
    // SAFETY: as required of the caller.
    unsafe {
        for entry in lists::iter::<pg_sys::RangeTblEntry>((*query).rtable) {
            let class = catalog::class((*entry).relid);
            let is_own = |class: catalog::Class| class.has_rows() && class.owner == user;
            let relid = (*entry).relid;
            if !class.is_some_and(is_own) || !catalog::cascade::may_act_below(relid, relid) {
                Error::not_ready(format!(
                    "{} is not a table of {}",
                    catalog::qualified_name((*entry).relid),
                    roles::name(user)
                ))
                .raise();
            }
        }
    }
}

/// Raises an error if the statement, or one of its WITH clause, has a relation that is not one of these.
///
/// # Safety
/// An analyzed query, before it is rewritten, without relations in sub-selects.
pub(super) unsafe fn check_names(query: *mut pg_sys::Query, tables: &[pg_sys::Oid]) {
    // SAFETY: as required of the caller: its lists are of such nodes, and a statement that was analyzed holds
    // those of its WITH clause as queries.
    unsafe {
        for entry in lists::iter::<pg_sys::RangeTblEntry>((*query).rtable) {
            let is_relation = (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION;
            if is_relation && !tables.contains(&(*entry).relid) {
                Error::not_ready(format!(
                    "another table has become {} meanwhile",
                    catalog::qualified_name((*entry).relid)
                ))
                .raise();
            }
        }
        for with in lists::iter::<pg_sys::CommonTableExpr>((*query).cteList) {
            check_names((*with).ctequery.cast(), tables);
        }
    }
}

/// Raises an error if the conditions of the statement, or of those of its WITH clause, have operators, types or functions by name that a user may have
/// made: names lead there by now, since a schema was renamed.
///
/// # Safety
/// As [`check_names`].
pub(super) unsafe fn check_conditions(query: *mut pg_sys::Query) {
    // SAFETY: as required of the caller: conditions are not changed while they are looked at, and its lists are of such nodes.
    unsafe {
        let conditions = (*query).jointree.as_ref().map(|from| from.quals);
        let conditions = conditions.and_then(|quals| Node::new(quals));
        if let Some(what) = conditions.and_then(functions_used::named_by_users) {
            Error::not_ready(format!("a query names {what} by now"))
                .detail("A user may have made it, and renamed a schema for the query to find it.")
                .hint("Try again.")
                .raise();
        }
        for with in lists::iter::<pg_sys::CommonTableExpr>((*query).cteList) {
            check_conditions((*with).ctequery.cast());
        }
    }
}

/// Makes the DELETE of a SELECT over one table: the rows that it would return are its target. The user's privilege
/// DELETE is not checked, as where rows are deleted one by one.
///
/// # Safety
/// The analyzed query has one table, the first of its range table, and no aggregate.
unsafe fn become_delete(query: *mut pg_sys::Query) {
    // SAFETY: as required of the caller.
    unsafe {
        (*query).commandType = CmdType::CMD_DELETE;
        (*query).resultRelation = 1;
        (*query).targetList = core::ptr::null_mut();
    }
}

/// The text of a query, and the table that it is about, where the text does not name it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sql<'a> {
    pub(super) text: &'a str,
    pub(super) table: Option<pg_sys::Oid>,
    pub(super) deletes: bool,
    /// The tables that the text's names lead to; `None`: it has no names.
    pub(super) named: Option<&'a [pg_sys::Oid]>,
    /// It has a condition of the caller's, who may use what they like.
    pub(super) has_callers: bool,
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
            has_callers: false,
        }
    }

    /// A statement that names these tables. If a name leads to another one, since a table or a schema
    /// was renamed, the statement is not run: an error (55000).
    pub(crate) fn naming(tables: &'a [pg_sys::Oid], text: &'a str) -> Self {
        Self {
            text,
            table: None,
            deletes: false,
            named: Some(tables),
            has_callers: false,
        }
    }

    /// A condition in it is the caller's.
    pub(crate) fn with_callers_condition(self) -> Self {
        Self {
            has_callers: true,
            ..self
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

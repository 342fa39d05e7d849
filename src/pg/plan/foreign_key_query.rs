//! What a query asks of the tables of a foreign key, by its tree before it is planned.

use super::planner_input::{QueryTree, RangeTableEntry};
use crate::pg::abi::lists;
use crate::pg::catalog::expressions::{same, tag};
use crate::pg::catalog::foreign_key::{self, ColumnPair, ColumnType, ForeignKey};
use crate::pg::catalog::{self, functions_used, syntax};
use crate::pg::exec::analysis;
use core::mem::zeroed;
use core::ptr::null_mut;
use pgrx::pg_sys::{
    self, BoolExprType, CmdType, JoinType, LockClauseStrength, Node, NodeTag, NullTestType, Oid,
};
use std::ffi::CString;

/// What a query does with rows of one table.
pub(crate) enum Work {
    Delete,
    /// Of these columns.
    Update(Vec<i16>),
    /// Locks them FOR KEY SHARE, and returns nothing of them.
    Lock,
}

/// A query of one table, the first of its range table.
pub(crate) struct TableQuery {
    pub(crate) relid: Oid,
    pub(crate) work: Work,
    /// All of them hold.
    conditions: Vec<*mut Node>,
}

impl TableQuery {
    /// `None` for other queries.
    pub(crate) fn of(query: QueryTree<'_>) -> Option<Self> {
        let outer = query.read();
        // With PERIOD, the ranges of the locked rows are looked at together.
        let locking = query.entry(1)?.subquery();
        let query = locking
            .filter(|_| outer.commandType == CmdType::CMD_SELECT)
            .unwrap_or(query);
        let tree = query.read();
        // SAFETY: a query has such a node; analysis puts RowMarkClauses into this list. What is made here is only
        // compared.
        let (is_alone, locks, conditions) = unsafe {
            let from = tree.jointree.as_ref()?;
            let mut first = entry(1);
            let mark = lists::nth::<pg_sys::RowMarkClause>(tree.rowMarks, 0);
            (
                same(from.fromlist, lists::of(&[&raw mut first])),
                mark.is_some_and(|mark| {
                    (*mark).strength == LockClauseStrength::LCS_FORKEYSHARE
                        && !pg_sys::contain_var_clause(outer.targetList.cast())
                }),
                // A rule's condition is joined to the others.
                parts(from.quals)
                    .into_iter()
                    .flat_map(|part| parts(part))
                    .collect(),
            )
        };
        let work = match tree.commandType {
            CmdType::CMD_DELETE => Work::Delete,
            CmdType::CMD_UPDATE => Work::Update(query.assignments().columns().collect()),
            CmdType::CMD_SELECT if locks => Work::Lock,
            _ => return None,
        };
        let does_more = [outer.cteList, tree.cteList, tree.returningList]
            .iter()
            .any(|list| !list.is_null());
        Some(Self {
            relid: without_children(query.entry(1)?).filter(|_| is_alone && !does_more)?,
            work,
            conditions,
        })
    }

    /// If it concerns the rows that refer to a key of the other table by this foreign key: how many parameters
    /// come before that key.
    pub(crate) fn key_referred_to(&self, key: &ForeignKey) -> Option<usize> {
        let count = key.pairs.len();
        // With PERIOD it may ask for more, and rules of the table may have added to it.
        let may_ask_more = || key.has_period || catalog::has_rules(self.relid);
        if self.conditions.len() != count && !may_ask_more() {
            return None;
        }
        // An UPDATE may have the new values first.
        let before = match self.work {
            Work::Update(_) => &[0, count][..],
            Work::Delete | Work::Lock => &[0],
        };
        before.iter().copied().find(|before| {
            self.compares(key, |at, pair, [from, to]| {
                let parameter = parameter(before + at + 1, to.oid);
                [parameter, column(1, pair.referencing, from)]
            })
        })
    }

    /// Whether it concerns the row that is referred to by this foreign key.
    pub(crate) fn looks_up(&self, key: &ForeignKey) -> bool {
        self.conditions.len() == key.pairs.len()
            && self.compares(key, |at, pair, [from, to]| {
                let column = column(1, pair.referenced, to);
                [column, parameter(at + 1, from.oid)]
            })
    }

    /// Whether its conditions call functions that a user who is no superuser may have made.
    pub(crate) fn calls_users_code(&self) -> bool {
        let parts = self.conditions.iter();
        // SAFETY: `of` took them from the query, which lives as long as its analysis or planning; they are only read.
        let mut trees = parts.filter_map(|&part| unsafe { syntax::Node::new(part) });
        trees.any(|tree| functions_used::untrusted(tree).is_some())
    }

    /// Whether it compares these operands by the foreign key's operators.
    fn compares(
        &self,
        key: &ForeignKey,
        operands: impl Fn(usize, ColumnPair, [ColumnType; 2]) -> [*mut Node; 2],
    ) -> bool {
        let is_asked = |expected: *mut Node| {
            // SAFETY: nodes, or null for what cannot be.
            let is_it = |&own: &*mut Node| unsafe { same(own, expected) };
            self.conditions.iter().any(is_it)
        };
        key.pairs.iter().enumerate().all(|(at, &pair)| {
            let types = key.types(pair);
            // Up to 17 PostgreSQL names a collation, in some of its queries.
            [pg_sys::InvalidOid, types[1].collation]
                .into_iter()
                .map(|collation| comparison(pair.equal, operands(at, pair, types), collation))
                .any(is_asked)
        })
    }
}

/// The two tables of a query, if all that it does is to select from what is in FROM.
pub(crate) fn two_tables(query: QueryTree<'_>) -> Option<[Oid; 2]> {
    let mut rest = query.read();
    (rest.rtable, rest.targetList) = (null_mut(), null_mut());
    rest.jointree = null_mut();
    #[cfg(since16)]
    {
        rest.rteperminfos = null_mut();
    }
    // Policies of the tables add conditions. If one read another table, there would be `hasSubLinks`.
    rest.hasRowSecurity = false;
    (rest.stmt_location, rest.stmt_len) = (0, 0);
    // SAFETY: Query is valid when zeroed apart from what is set; equal() only reads.
    let is_all = unsafe {
        let mut empty: pg_sys::Query = zeroed();
        empty.type_ = NodeTag::T_Query;
        empty.commandType = CmdType::CMD_SELECT;
        empty.canSetTag = true;
        same(&raw mut rest, &raw mut empty)
    };
    let table = |varno| without_children(query.entry(varno)?);
    is_all.then_some([table(1)?, table(2)?])
}

/// Which rows of the referencing table a query of two tables selects.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selects {
    /// Those that refer to no row.
    Violations,
    /// Those that refer to a row of the referenced table, a partition.
    References,
}

/// Whether the query of [`two_tables`], the foreign key's, selects these rows, and of them the referencing columns.
pub(crate) fn selects(query: QueryTree<'_>, key: &ForeignKey, what: Selects) -> bool {
    let (mut joined_by, mut given, mut returned) = (vec![], vec![], vec![]);
    for &pair in &key.pairs {
        let [from, to] = key.types(pair);
        let (own, other) = (
            column(1, pair.referencing, from),
            column(2, pair.referenced, to),
        );
        let collation = match from.collation == to.collation {
            true => pg_sys::InvalidOid,
            false => to.collation,
        };
        joined_by.push(comparison(pair.equal, [other, own], collation));
        given.push(null_test(own, NullTestType::IS_NOT_NULL));
        returned.push(own);
    }
    let Some(&first) = key.pairs.first() else {
        return false;
    };
    let mut conditions = match what {
        Selects::Violations => {
            let missing = outer_joined(column(2, first.referenced, key.types(first)[1]));
            vec![null_test(missing, NullTestType::IS_NULL)]
        }
        Selects::References => partition_constraint(key.referenced),
    };
    conditions.push(junction(
        &given,
        match key.full {
            true => BoolExprType::OR_EXPR,
            false => BoolExprType::AND_EXPR,
        },
    ));
    // SAFETY: the nodes are valid when zeroed apart from what is set; equal() only reads. The parser puts
    // TargetEntries into the target list.
    unsafe {
        let (mut left, mut right) = (entry(1), entry(2));
        let mut join: pg_sys::JoinExpr = zeroed();
        join.type_ = NodeTag::T_JoinExpr;
        join.jointype = match what {
            Selects::Violations => JoinType::JOIN_LEFT,
            Selects::References => JoinType::JOIN_INNER,
        };
        (join.larg, join.rarg) = ((&raw mut left).cast(), (&raw mut right).cast());
        join.quals = junction(&joined_by, BoolExprType::AND_EXPR);
        join.rtindex = JOIN as _;
        let expected = pg_sys::makeFromExpr(
            lists::of(&[&raw mut join]),
            junction(&conditions, BoolExprType::AND_EXPR),
        );
        let tree = query.read();
        same(tree.jointree, expected)
            && lists::len(tree.targetList) == returned.len()
            && lists::iter::<pg_sys::TargetEntry>(tree.targetList)
                .zip(returned)
                .all(|(target, column)| !(*target).resjunk && same((*target).expr, column))
    }
}

/// The range table index of a join of the first two entries.
const JOIN: u32 = 3;

/// The table, without others that inherit from it: a partitioned table's belong to it, and a partition has none.
fn without_children(entry: RangeTableEntry<'_>) -> Option<Oid> {
    let relid = entry.table()?;
    let has_own = |class: catalog::Class| {
        class.relkind == pg_sys::RELKIND_PARTITIONED_TABLE || class.is_partition
    };
    (!entry.read().inh || catalog::class(relid).is_some_and(has_own)).then_some(relid)
}

/// The tree that analysis makes of a comparison whose operands are cast to the types that the operator takes; null
/// if they cannot be.
fn comparison(operator: Oid, operands: [*mut Node; 2], collation: Oid) -> *mut Node {
    let mut takes = [pg_sys::InvalidOid; 2];
    // SAFETY: the operator and the columns are those of a constraint; CollateExpr is valid when zeroed apart from
    // what is set. All is made in the current memory context.
    unsafe {
        let [left, right] = &mut takes;
        pg_sys::op_input_types(operator, left, right);
        let [left, mut right] = [0, 1].map(|at| {
            // PostgreSQL writes a cast only where the types differ; one to the same type would show a modifier.
            if pg_sys::exprType(operands[at]) == takes[at] {
                return operands[at];
            }
            pg_sys::coerce_to_target_type(
                null_mut(),
                operands[at],
                pg_sys::exprType(operands[at]),
                takes[at],
                -1,
                pg_sys::CoercionContext::COERCION_EXPLICIT,
                pg_sys::CoercionForm::COERCE_EXPLICIT_CAST,
                -1,
            )
        });
        if left.is_null() || right.is_null() {
            return null_mut();
        }
        let none = pg_sys::InvalidOid;
        if collation != none {
            let mut collated: pg_sys::CollateExpr = zeroed();
            collated.xpr.type_ = NodeTag::T_CollateExpr;
            (collated.arg, collated.collOid) = (right.cast(), collation);
            right = copy(&raw const collated);
        }
        let (left, right) = (left.cast(), right.cast());
        let made = pg_sys::make_opclause(operator, pg_sys::BOOLOID, false, left, right, none, none);
        pg_sys::assign_expr_collations(null_mut(), made.cast());
        made.cast()
    }
}

fn column(varno: u32, attno: i16, of: ColumnType) -> *mut Node {
    // SAFETY: allocates in the current memory context.
    unsafe { pg_sys::makeVar(varno as _, attno, of.oid, of.typmod, of.collation, 0).cast() }
}

/// The column, which is null where the outer join has found no row.
fn outer_joined(column: *mut Node) -> *mut Node {
    #[cfg(since16)]
    // SAFETY: made by [`column`], and not shared.
    unsafe {
        (*column.cast::<pg_sys::Var>()).varnullingrels = pg_sys::bms_make_singleton(JOIN as _);
    }
    column
}

/// The parameter of this number, of a statement that is prepared for types.
fn parameter(number: usize, type_oid: Oid) -> *mut Node {
    // SAFETY: Param is valid when zeroed apart from what is set.
    unsafe {
        let mut parameter: pg_sys::Param = zeroed();
        parameter.xpr.type_ = NodeTag::T_Param;
        parameter.paramkind = pg_sys::ParamKind::PARAM_EXTERN;
        parameter.paramid = i32::try_from(number).unwrap_or(0);
        (parameter.paramtype, parameter.paramtypmod) = (type_oid, -1);
        parameter.paramcollid = pg_sys::get_typcollation(type_oid);
        copy(&raw const parameter)
    }
}

fn null_test(arg: *mut Node, is: NullTestType::Type) -> *mut Node {
    // SAFETY: NullTest is valid when zeroed apart from what is set.
    unsafe {
        let mut test: pg_sys::NullTest = zeroed();
        test.xpr.type_ = NodeTag::T_NullTest;
        (test.arg, test.nulltesttype) = (arg.cast(), is);
        test.argisrow = pg_sys::type_is_rowtype(pg_sys::exprType(arg));
        copy(&raw const test)
    }
}

/// These conditions, joined by AND or OR.
fn junction(conditions: &[*mut Node], by: BoolExprType::Type) -> *mut Node {
    match conditions {
        &[one] => one,
        // SAFETY: boolean expressions of the current planning.
        several => unsafe { pg_sys::makeBoolExpr(by, lists::of(several), -1).cast() },
    }
}

/// What stands in FROM for an entry of the range table.
fn entry(varno: i32) -> pg_sys::RangeTblRef {
    pg_sys::RangeTblRef {
        type_: NodeTag::T_RangeTblRef,
        rtindex: varno,
    }
}

/// A copy in the current memory context.
///
/// # Safety
/// A node.
unsafe fn copy<T>(node: *const T) -> *mut Node {
    // SAFETY: as required of the caller.
    unsafe { pg_sys::copyObjectImpl(node.cast()).cast() }
}

/// The constraint of a partition, which is the second entry of a range table; none for no partition.
fn partition_constraint(relid: Oid) -> Vec<*mut Node> {
    // SAFETY: a C string or null; the query that is made of it is a SELECT of one table, not shared.
    unsafe {
        let alias = c"pk".as_ptr().cast_mut();
        let constraint = foreign_key::bytes(pg_sys::pg_get_partconstrdef_string(relid, alias));
        if constraint.is_empty() {
            return vec![];
        }
        let table = foreign_key::table(relid);
        let query = [b"SELECT FROM ", &table[..], b" pk WHERE ", &constraint].concat();
        let text = CString::new(query).unwrap_or_default();
        let state = pg_sys::make_parsestate(null_mut());
        (*state).p_sourcetext = text.as_ptr();
        let query = pg_sys::transformTopLevelStmt(state, analysis::parse(&text));
        pg_sys::free_parsestate(state);
        let conditions = (*(*query).jointree).quals;
        pg_sys::ChangeVarNodes(conditions, 1, 2, 0);
        parts(conditions)
    }
}

/// The conditions that AND joins.
///
/// # Safety
/// A condition after analysis, or null.
unsafe fn parts(condition: *mut Node) -> Vec<*mut Node> {
    // SAFETY: as required of the caller; a node's tag tells its type.
    unsafe {
        let is_and = tag(condition) == Some(NodeTag::T_BoolExpr)
            && (*condition.cast::<pg_sys::BoolExpr>()).boolop == BoolExprType::AND_EXPR;
        match is_and {
            true => lists::iter((*condition.cast::<pg_sys::BoolExpr>()).args).collect(),
            false => vec![condition],
        }
    }
}

//! Leaves deletion's indexes out of plans that cannot use them. Both are partial, by the
//! override column (`WHERE ttl IS NULL`, `WHERE ttl > 0`): a query whose conditions do not
//! mention that column implies neither. The planner tries to prove them at every planning, a
//! tenth of the work for a query by primary key
//! (`docs/decisions/0021-what-benchmarks-changed.md`).

use crate::pg::{lists, nodes};
use pgrx::pg_sys::{self, NodeTag, PlannerInfo, RelOptInfo};

const WHOLE_ROW: i16 = 0;

/// Takes partial indexes whose predicate is about the column `ttl` alone out of the relation's
/// list, if no condition of the query mentions the column.
///
/// They are not missed: PostgreSQL scans no index whose predicate is not implied, nor takes a
/// range of values or a proof of uniqueness from it. Only the number of groups may be estimated
/// from an index expression's statistics, so queries that group keep them.
///
/// # Safety
/// `rel` is a relation of the query itself, as the planner has just read it.
pub(super) unsafe fn leave_out(root: *mut PlannerInfo, rel: *mut RelOptInfo, ttl: i16) {
    // SAFETY: as required of the caller. The planner has read the list for this relation,
    // and nothing else refers to it yet.
    unsafe {
        let query = (*root).parse;
        let groups = !(*query).groupClause.is_null()
            || !(*query).groupingSets.is_null()
            || !(*query).distinctClause.is_null();
        let is_theirs = |index: &pg_sys::IndexOptInfo| is_about(index.indpred, ttl);
        let mut indexes = lists::iter::<pg_sys::IndexOptInfo>((*rel).indexlist);
        if groups || !indexes.any(|index| is_theirs(&*index)) || mentions(root, rel, ttl) {
            return;
        }
        (*rel).indexlist = lists::retain((*rel).indexlist, |index| !is_theirs(index));
    }
}

/// Whether the predicate is `column IS [NOT] NULL`, or compares the column to a constant.
///
/// # Safety
/// The predicate of an index, a list of conditions or null.
unsafe fn is_about(predicate: *mut pg_sys::List, attno: i16) -> bool {
    // SAFETY: as required of the caller; a node's tag tells its type.
    unsafe {
        let Some(condition) = lists::nth::<pg_sys::Node>(predicate, 0) else {
            return false;
        };
        let arg = match (*condition).type_ {
            NodeTag::T_NullTest => (*condition.cast::<pg_sys::NullTest>()).arg.cast(),
            NodeTag::T_OpExpr => {
                let args = (*condition.cast::<pg_sys::OpExpr>()).args;
                let other = lists::nth::<pg_sys::Node>(args, 1);
                match lists::nth::<pg_sys::Node>(args, 0) {
                    Some(arg) if nodes::tag(other.unwrap_or(arg)) == Some(NodeTag::T_Const) => arg,
                    _ => return false,
                }
            }
            _ => return false,
        };
        let is_column = nodes::tag(arg) == Some(NodeTag::T_Var)
            && (*arg.cast::<pg_sys::Var>()).varattno == attno;
        lists::len(predicate) == 1 && is_column
    }
}

/// Whether a condition of the query mentions the column or the whole row: in WHERE, in JOIN, or
/// in a policy for rows.
///
/// # Safety
/// As [`leave_out`]; the conditions are preprocessed, and hold no query any more.
unsafe fn mentions(root: *mut PlannerInfo, rel: *mut RelOptInfo, attno: i16) -> bool {
    // SAFETY: as required of the caller; the trees are only read.
    unsafe {
        let relid = (*rel).relid;
        let entry = *(*root).simple_rte_array.add(relid as usize);
        let conditions = (*(*root).parse).jointree;
        let columns = [attno, WHOLE_ROW];
        nodes::mentions(conditions, relid, &columns)
            || nodes::mentions((*entry).securityQuals, relid, &columns)
    }
}

//! The planner's requests to support functions.

use super::planned_table;
use super::planner_input::{QueryTree, RangeTableEntry};
use crate::pg::abi::lists;
use crate::pg::catalog::expressions;
use crate::pg::exec::call::Argument;
use core::marker::PhantomData;
use pgrx::pg_sys::{
    self, Datum, FuncExpr, Node, NodeTag, PlannerInfo, SupportRequestSimplify, Var,
};

/// A request, while the support function runs.
pub(crate) struct Request<'a>(*mut Node, PhantomData<&'a ()>);

impl Argument for Request<'_> {
    unsafe fn of(datum: Datum) -> Self {
        Self(datum.cast_mut_ptr(), PhantomData)
    }
}

impl<'a> Request<'a> {
    pub(crate) fn as_ptr(&self) -> *mut Node {
        self.0
    }

    /// The call, and the planner's state, of a request to simplify one.
    fn simplified(&self) -> Option<(&'a FuncExpr, Option<&'a PlannerInfo>)> {
        // SAFETY: a node, whose tag tells its type, and what it points to, as long as the function runs.
        unsafe {
            ((*self.0).type_ == NodeTag::T_SupportRequestSimplify).then(|| {
                let request = &*self.0.cast::<SupportRequestSimplify>();
                (&*request.fcall, request.root.as_ref())
            })
        }
    }

    /// For a request to simplify a call: the type of its result.
    pub(crate) fn result_type(&self) -> Option<pg_sys::Oid> {
        Some(self.simplified()?.0.funcresulttype)
    }

    /// For a request to simplify a call whose first argument is this column of a table in the query: the column and
    /// that range table entry.
    fn of_column(&self, attno: i32) -> Option<(&'a Var, RangeTableEntry<'a>)> {
        let (call, root) = self.simplified()?;
        // SAFETY: a list of expressions, whose tags tell their types; the query that is planned.
        unsafe {
            let row = lists::nth::<Var>(call.args, 0)?;
            if expressions::tag(row) != Some(NodeTag::T_Var) {
                return None;
            }
            let row = &*row;
            let fits = i32::from(row.varattno) == attno && row.varlevelsup == 0;
            let root = root.filter(|_| fits)?;
            #[allow(
                clippy::unnecessary_cast,
                reason = "PostgreSQL 15 declares it unsigned, others signed"
            )]
            let entry = QueryTree::new(root.parse).entry(row.varno as u32)?;
            Some((row, entry))
        }
    }

    /// For a request to simplify a call whose only argument is a row of a table in the query: that
    /// range table entry. `None` for the row of an outer query, or one that an outer join makes NULL.
    pub(crate) fn of_whole_row(&self) -> Option<RangeTableEntry<'a>> {
        let (row, entry) = self.of_column(0)?;
        is_plain(row).then_some(entry)
    }

    /// What the call is replaced by may have functions that must not run in parallel workers, as
    /// the query had not.
    pub(crate) fn mind_parallel_hazards(&self) {
        if let Some((_, Some(root))) = self.simplified() {
            // SAFETY: the state of the planning under way.
            unsafe { planned_table::mind_parallel_hazards(root) };
        }
    }

    /// For a request to simplify a call whose arguments are the `tableoid` of a table in the query
    /// and a constant: that range table entry and the constant.
    pub(crate) fn of_table_and_constant(&self) -> Option<(RangeTableEntry<'a>, pg_sys::Const)> {
        let (_, entry) = self.of_column(pg_sys::TableOidAttributeNumber)?;
        // SAFETY: a list of expressions, whose tags tell their types.
        unsafe {
            let constant = lists::nth::<pg_sys::Const>(self.simplified()?.0.args, 1)?;
            (expressions::tag(constant) == Some(NodeTag::T_Const)).then(|| (entry, *constant))
        }
    }
}

/// Whether the row is as its table has it: no outer join makes it NULL (15 does not say), nor is it
/// OLD or NEW of RETURNING.
#[allow(unused_variables, reason = "15 has neither")]
fn is_plain(row: &Var) -> bool {
    #[cfg(since16)]
    if !row.varnullingrels.is_null() {
        return false;
    }
    #[cfg(since18)]
    if row.varreturningtype != pg_sys::VarReturningType::VAR_RETURNING_DEFAULT {
        return false;
    }
    true
}

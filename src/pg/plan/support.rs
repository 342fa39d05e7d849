//! The planner's requests to support functions.

use super::planner_input::{QueryTree, RangeTableEntry};
use crate::pg::abi::lists;
use crate::pg::catalog::expressions;
use crate::pg::exec::call::Argument;
use core::marker::PhantomData;
use pgrx::pg_sys::{self, Datum, Node, NodeTag, SupportRequestSimplify};

/// A request, while the support function runs.
pub(crate) struct Request<'a>(*mut Node, PhantomData<&'a ()>);

impl Argument for Request<'_> {
    unsafe fn of(datum: Datum) -> Self {
        Self(datum.cast_mut_ptr(), PhantomData)
    }
}

impl<'a> Request<'a> {
    /// The request node.
    pub(crate) fn as_ptr(&self) -> *mut Node {
        self.0
    }

    /// For a request to simplify a call: the type of its result.
    pub(crate) fn result_type(&self) -> Option<pg_sys::Oid> {
        // SAFETY: a node, whose tag tells its type; the call is one.
        unsafe {
            ((*self.0).type_ == NodeTag::T_SupportRequestSimplify)
                .then(|| (*(*self.0.cast::<SupportRequestSimplify>()).fcall).funcresulttype)
        }
    }

    /// For a request to simplify a call whose only argument is a row of a table in the query: that
    /// range table entry. `None` for the row of an outer query, or one that an outer join makes NULL.
    pub(crate) fn of_whole_row(&self) -> Option<RangeTableEntry<'a>> {
        // SAFETY: a node, whose tag tells its type; so is that of the argument.
        unsafe {
            if (*self.0).type_ != NodeTag::T_SupportRequestSimplify {
                return None;
            }
            let request = self.0.cast::<SupportRequestSimplify>();
            let row = lists::nth::<pg_sys::Var>((*(*request).fcall).args, 0)?;
            let fits = expressions::tag(row) == Some(NodeTag::T_Var)
                && (*row).varattno == 0
                && (*row).varlevelsup == 0
                && is_plain(&*row);
            let root = (*request).root.as_ref().filter(|_| fits)?;
            #[allow(
                clippy::unnecessary_cast,
                reason = "PostgreSQL 15 declares it unsigned, others signed"
            )]
            QueryTree::new(root.parse).entry((*row).varno as u32)
        }
    }

    /// What the call is replaced by may have functions that must not run in parallel workers, as
    /// the query had not.
    pub(crate) fn mind_parallel_hazards(&self) {
        // SAFETY: a node, whose tag tells its type; the planner's state, if it is there.
        unsafe {
            if (*self.0).type_ != NodeTag::T_SupportRequestSimplify {
                return;
            }
            let root = (*self.0.cast::<SupportRequestSimplify>()).root;
            let Some(global) = root.as_ref().and_then(|root| root.glob.as_mut()) else {
                return;
            };
            if global.maxParallelHazard.cast_unsigned() == pg_sys::PROPARALLEL_SAFE {
                global.maxParallelHazard = pg_sys::PROPARALLEL_RESTRICTED.cast_signed();
            }
        }
    }

    /// For a request to simplify a call whose arguments are the `tableoid` of a table in the query
    /// and a constant: that range table entry and the constant.
    pub(crate) fn of_table_and_constant(&self) -> Option<(RangeTableEntry<'a>, pg_sys::Const)> {
        // SAFETY: a node, whose tag tells its type; so are those of the call.
        unsafe {
            if (*self.0).type_ != NodeTag::T_SupportRequestSimplify {
                return None;
            }
            let request = self.0.cast::<SupportRequestSimplify>();
            let arguments = (*(*request).fcall).args;
            let row = lists::nth::<pg_sys::Var>(arguments, 0)?;
            let constant = lists::nth::<pg_sys::Const>(arguments, 1)?;
            let fits = expressions::tag(row) == Some(NodeTag::T_Var)
                && expressions::tag(constant) == Some(NodeTag::T_Const)
                && i32::from((*row).varattno) == pg_sys::TableOidAttributeNumber
                && (*row).varlevelsup == 0;
            let root = (*request).root.as_ref().filter(|_| fits)?;
            #[allow(
                clippy::unnecessary_cast,
                reason = "PostgreSQL 15 declares it unsigned, others signed"
            )]
            let entry = QueryTree::new(root.parse).entry((*row).varno as u32)?;
            Some((entry, *constant))
        }
    }
}

/// Whether the row is as its table has it: no outer join makes it NULL (15 does not say), nor is it
/// OLD or NEW of RETURNING.
#[allow(unused_variables, reason = "15 has neither")]
fn is_plain(row: &pg_sys::Var) -> bool {
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

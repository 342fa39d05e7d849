//! Indexes on a call of a function with two columns, whose entries are computed without
//! PostgreSQL's preparing the expression.
//!
//! It prepares it in each statement that writes a row, for longer than the rest of the entry takes
//! (`docs/decisions/0042-one-index.md`).

#![allow(ffi_unwind_calls, reason = "PostgreSQL's own longjmp passes")]

use super::context::Context;
use super::externs::raising;
use super::firing::Target;
use super::scan::Index;
use super::table::value_in;
use super::{lists, nodes, unguarded};
use pgrx::pg_sys::{self, Datum, ExprContext, ExprState, NodeTag, Oid};

/// What the function returns for values of the columns; `None` is NULL.
pub(crate) type Compute = fn(Option<Datum>, Option<Datum>) -> Option<Datum>;

/// An expression that is prepared; PostgreSQL sees the first part only.
#[repr(C)]
struct Prepared {
    state: ExprState,
    columns: [i16; 2],
    compute: Compute,
}

impl<'a> Target<'a> {
    /// Opens the table's indexes, as PostgreSQL does at the first row that is written, unless it is
    /// done; at the statement's end it closes them. Not for a partitioned table, which has no
    /// rows. False if there are none. Unguarded.
    pub(super) fn open_indexes(self, checks_first: bool) -> bool {
        let target = self.as_ptr();
        // SAFETY: the statement has the table open and locked.
        unsafe {
            let class = &*(*(*target).ri_RelationDesc).rd_rel;
            if class.relkind.cast_unsigned() != pg_sys::RELKIND_RELATION || !class.relhasindex {
                return false;
            }
            if (*target).ri_IndexRelationDescs.is_null() {
                let memory = Context::of((*self.state()).es_query_cxt);
                memory.within(|| unguarded::ExecOpenIndices(target, checks_first));
            }
            !(*target).ri_IndexRelationDescs.is_null()
        }
    }

    /// As [`Self::open_indexes`], guarded.
    pub(crate) fn open_indexes_guarded(self, checks_first: bool) -> bool {
        // SAFETY: nothing is to be dropped.
        unsafe { at_boundary!(self.open_indexes(checks_first)) }
    }

    /// An index of the table that the statement has opened.
    pub(crate) fn opened_index(self, index: Oid) -> Option<Index<'a>> {
        let target = self.as_ptr();
        // SAFETY: an array of as many open indexes as are counted.
        unsafe {
            let indexes = (*target).ri_IndexRelationDescs;
            let count = usize::try_from((*target).ri_NumIndices).unwrap_or(0);
            let mut opened = (0..count).map(|at| *indexes.add(at));
            let found = opened.find(|&it| (*it).rd_id == index)?;
            Some(Index::of(found, self.table()))
        }
    }

    /// Opens the table's indexes as [`Self::open_indexes`]; in those whose only expression is a call of `function` with two columns, the entries
    /// of this statement are what `compute` returns. Guarded.
    pub(crate) fn compute_index_entries(self, function: Oid, compute: Compute, checks_first: bool) {
        let (target, estate) = (self.as_ptr(), self.state());
        // SAFETY: the statement has the table open and locked, and PostgreSQL closes the indexes at
        // its end; arrays of as many indexes as are counted.
        unsafe {
            let memory = Context::of((*estate).es_query_cxt);
            // One guard for all of it; nothing here is to be dropped when an error passes.
            at_boundary!(memory.within(|| {
                if !self.open_indexes(checks_first) {
                    return;
                }
                for at in 0..usize::try_from((*target).ri_NumIndices).unwrap_or(0) {
                    let info = &mut **(*target).ri_IndexRelationInfo.add(at);
                    if info.ii_ExpressionsState.is_null()
                        && let Some(columns) = columns_of_call(info.ii_Expressions, function)
                    {
                        let prepared = prepare(columns, compute);
                        info.ii_ExpressionsState =
                            raising::lappend(core::ptr::null_mut(), prepared.cast());
                    }
                }
            }););
        }
    }
}

/// In the current memory context. Unguarded.
fn prepare(columns: [i16; 2], compute: Compute) -> *mut ExprState {
    // SAFETY: allocates as much as is written.
    unsafe {
        let prepared = unguarded::palloc0(size_of::<Prepared>()).cast::<Prepared>();
        (*prepared).state.type_ = NodeTag::T_ExprState;
        (*prepared).state.evalfunc = Some(evaluate);
        (*prepared).columns = columns;
        (*prepared).compute = compute;
        prepared.cast()
    }
}

/// Unguarded: an error in a row that cannot be read passes a frame with nothing to drop.
unsafe extern "C-unwind" fn evaluate(
    state: *mut ExprState,
    context: *mut ExprContext,
    is_null: *mut bool,
) -> Datum {
    // SAFETY: made by `prepare`; PostgreSQL puts the row into the context.
    unsafe {
        let prepared = &*state.cast::<Prepared>();
        let value = |at: usize| value_in((*context).ecxt_scantuple, prepared.columns[at]);
        let computed = (prepared.compute)(value(0), value(1));
        *is_null = computed.is_none();
        computed.unwrap_or(Datum::null())
    }
}

/// The columns, if the expressions are one call of the function with two columns.
///
/// # Safety
/// The expressions of an index.
unsafe fn columns_of_call(expressions: *mut pg_sys::List, function: Oid) -> Option<[i16; 2]> {
    // SAFETY: as required of the caller; a node's tag tells its type.
    unsafe {
        let call = lists::nth::<pg_sys::FuncExpr>(expressions, 0)?;
        if lists::len(expressions) != 1
            || nodes::tag(call) != Some(NodeTag::T_FuncExpr)
            || (*call).funcid != function
            || lists::len((*call).args) != 2
        {
            return None;
        }
        let column = |at| {
            let var = lists::nth::<pg_sys::Var>((*call).args, at)?;
            let is_column = nodes::tag(var) == Some(NodeTag::T_Var) && (*var).varattno > 0;
            is_column.then(|| (*var).varattno)
        };
        Some([column(0)?, column(1)?])
    }
}

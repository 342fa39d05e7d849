//! Evaluates expressions for rows of a table.
//!
//! Unguarded, as [`crate::pg::abi::unguarded`], unless a function says otherwise.

#![allow(ffi_unwind_calls, reason = "PostgreSQL's own longjmp passes")]

use super::scan::KeyValues;
use super::table::{Slot, Table};
use crate::pg::abi::context::Context;
use crate::pg::abi::unguarded;
use core::cell::Cell;
use core::marker::PhantomData;
use pgrx::pg_sys::{self, Datum, Oid};

/// Evaluates expressions for rows of a table.
#[derive(Clone, Copy)]
pub(crate) struct Evaluator<'a> {
    estate: *mut pg_sys::EState,
    context: *mut pg_sys::ExprContext,
    table: Oid,
    memory: PhantomData<Context<'a>>,
}

/// An expression that an [`Evaluator`] has prepared.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Expression<'a>(*mut pg_sys::ExprState, PhantomData<Context<'a>>);

impl<'a> Evaluator<'a> {
    /// An evaluator for the table, freed with `memory`. Guarded.
    pub(crate) fn new(table: Oid, memory: Context<'a>) -> Self {
        // SAFETY: the executor state and all that it owns are allocated in `memory`, which outlives the value.
        memory.within(|| unsafe {
            let estate = pg_sys::CreateExecutorState();
            Self {
                estate,
                context: pg_sys::MakePerTupleExprContext(estate),
                table,
                memory: PhantomData,
            }
        })
    }

    /// The memory context of prepared expressions.
    pub(crate) fn memory(self) -> Context<'a> {
        // SAFETY: the context is a child of the memory for which the evaluator was made.
        unsafe { Context::of((*self.estate).es_query_cxt) }
    }

    /// Prepares an expression. Guarded.
    ///
    /// # Safety
    /// The tree is a valid expression, before planning.
    pub(crate) unsafe fn prepare(self, tree: *mut pg_sys::Expr) -> Expression<'a> {
        // SAFETY: as required of the caller; all is allocated with the estate.
        let prepared = unsafe { pg_sys::ExecPrepareExpr(tree, self.estate) };
        Expression(prepared, PhantomData)
    }

    /// The table's CHECK constraints. Guarded.
    pub(crate) fn checks(self, table: Table<'_>) -> Vec<Expression<'a>> {
        // SAFETY: open; its constraints are an array of that many.
        unsafe {
            let Some(constraints) = (*(*table.as_ptr()).rd_att).constr.as_ref() else {
                return vec![];
            };
            (0..usize::from(constraints.num_check))
                .map(|at| &*constraints.check.add(at))
                .filter(|_check| {
                    #[cfg(since18)]
                    return _check.ccenforced;
                    #[cfg(not(since18))]
                    true
                })
                .map(|check| {
                    let tree = pg_sys::stringToNode(check.ccbin).cast::<pg_sys::Node>();
                    #[cfg(since18)]
                    let tree = pg_sys::expand_generated_columns_in_expr(tree, table.as_ptr(), 1);
                    self.prepare(tree.cast())
                })
                .collect()
        }
    }

    /// A generated column of the table. Guarded.
    pub(crate) fn generated(self, table: Table<'_>, attno: i16) -> Generated<'a> {
        // SAFETY: open; the expression of one of its columns.
        let expression = unsafe {
            self.prepare(pg_sys::build_column_default(table.as_ptr(), attno.into()).cast())
        };
        Generated {
            attno,
            expression,
            former: Cell::new(None),
        }
    }

    /// Prepares the expressions and the predicate of a locked index. Guarded.
    pub(crate) fn index(self, index: Oid) -> IndexExpressions<'a> {
        // SAFETY: locked; what is read of it is copied into the current memory.
        self.memory().within(|| unsafe {
            let index = pg_sys::index_open(index, pg_sys::AccessShareLock.cast_signed());
            let info = pg_sys::BuildIndexInfo(index);
            pg_sys::index_close(index, pg_sys::NoLock.cast_signed());
            let predicate = (*info).ii_Predicate;
            let predicate = (!predicate.is_null())
                .then(|| Expression(pg_sys::ExecPrepareQual(predicate, self.estate), PhantomData));
            IndexExpressions {
                evaluator: self,
                info,
                predicate,
            }
        })
    }

    /// Frees the memory of the previous row, and sets the row's table for `tableoid`.
    pub(crate) fn begin_row(self, row: Slot<'_>) {
        // SAFETY: the evaluator alone uses its per-tuple memory; the slot exists for as long as `row`.
        unsafe {
            unguarded::MemoryContextReset((*self.context).ecxt_per_tuple_memory);
            (*row.as_ptr()).tts_tableOid = row.table().oid();
        }
    }

    /// The value for a row, in the current memory context; `None` for NULL. On the first call
    /// PostgreSQL checks that the slot has the columns.
    #[inline]
    pub(crate) fn value(self, expression: Expression<'_>, row: Slot<'_>) -> Option<Datum> {
        let mut is_null = row.is_empty();
        // SAFETY: prepared, and so it has this function; the row is there.
        unsafe {
            let evaluate = (*expression.0).evalfunc.filter(|_| !is_null)?;
            (*self.context).ecxt_scantuple = row.as_ptr();
            let value = evaluate(expression.0, self.context, &mut is_null);
            (!is_null).then_some(value)
        }
    }

    /// Whether the condition holds for a row; `None` for NULL.
    #[inline]
    pub(crate) fn holds(self, condition: Expression<'_>, row: Slot<'_>) -> Option<bool> {
        self.value(condition, row)
            .map(|value| value.value() as u8 != 0)
    }

    /// As [`Self::holds`], but keeps no memory.
    #[inline]
    pub(crate) fn holds_by_itself(self, condition: Expression<'_>, row: Slot<'_>) -> Option<bool> {
        self.begin_row(row);
        // SAFETY: the executor state has the context for as long as the evaluator exists.
        let memory = unsafe { Context::of((*self.context).ecxt_per_tuple_memory) };
        memory.within(|| self.holds(condition, row))
    }
}

/// A generated column, computed for a row earlier than PostgreSQL does it.
pub(crate) struct Generated<'a> {
    attno: i16,
    expression: Expression<'a>,
    /// The column's value before it was computed.
    former: Cell<Option<Datum>>,
}

impl Generated<'_> {
    /// Computes the column of a row that was fully read; [`Self::restore`] undoes it.
    pub(crate) fn compute(&self, evaluator: Evaluator<'_>, row: Slot<'_>) {
        let value = evaluator.value(self.expression, row);
        self.former.set(row.value(self.attno));
        self.set(evaluator, row, value);
    }

    pub(crate) fn restore(&self, evaluator: Evaluator<'_>, row: Slot<'_>) {
        self.set(evaluator, row, self.former.get());
    }

    fn set(&self, evaluator: Evaluator<'_>, row: Slot<'_>, value: Option<Datum>) {
        if row.table().oid() == evaluator.table {
            // SAFETY: a value of the column, of the same table.
            unsafe { row.set(self.attno, value) };
        }
    }
}

/// The expressions and the predicate of an index.
#[derive(Clone, Copy)]
pub(crate) struct IndexExpressions<'a> {
    evaluator: Evaluator<'a>,
    info: *mut pg_sys::IndexInfo,
    predicate: Option<Expression<'a>>,
}

impl IndexExpressions<'_> {
    /// Whether the index has an entry for the row, by its predicate.
    pub(crate) fn has(&self, row: Slot<'_>) -> bool {
        self.predicate
            .is_none_or(|predicate| self.evaluator.holds(predicate, row) == Some(true))
    }

    pub(crate) fn form(&self, row: Slot<'_>, entry: &mut KeyValues) {
        let (values, nulls) = (entry.values.as_mut_ptr(), entry.nulls.as_mut_ptr());
        // SAFETY: the row is there; the arrays hold any entry.
        unsafe {
            if !row.is_empty() {
                let Evaluator {
                    context, estate, ..
                } = self.evaluator;
                (*context).ecxt_scantuple = row.as_ptr();
                unguarded::FormIndexDatum(self.info, row.as_ptr(), estate, values, nulls);
            }
        }
    }
}

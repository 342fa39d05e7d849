//! Executions without a plan: expressions for a table's rows, and the triggers of a DELETE.
//!
//! Unguarded, as [`super::unguarded`], unless a function says otherwise.

#![allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]

use super::memory::Memory;
use super::scan::Values;
use super::table::{Slot, Table};
use super::{externs, lists, unguarded};
use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr::null_mut;
use pgrx::pg_sys::{self, Datum, Oid};

/// Evaluates expressions for rows of a table.
#[derive(Clone, Copy)]
pub(crate) struct Evaluator<'a> {
    estate: *mut pg_sys::EState,
    context: *mut pg_sys::ExprContext,
    table: Oid,
    memory: PhantomData<Memory<'a>>,
}

/// An expression that an [`Evaluator`] has prepared.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Expression<'a>(*mut pg_sys::ExprState, PhantomData<Memory<'a>>);

impl<'a> Evaluator<'a> {
    /// In `memory`, with which it is freed. Guarded.
    pub(crate) fn new(table: Oid, memory: Memory<'a>) -> Self {
        // SAFETY: all is allocated in the memory.
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

    /// The memory of what it prepares.
    pub(crate) fn memory(self) -> Memory<'a> {
        // SAFETY: freed with its parent.
        unsafe { Memory::of((*self.estate).es_query_cxt) }
    }

    /// Guarded.
    ///
    /// # Safety
    /// An expression of the planner.
    pub(crate) unsafe fn prepare(self, tree: *mut pg_sys::Expr) -> Expression<'a> {
        // SAFETY: as required of the caller; all is allocated with the estate.
        Expression(
            unsafe { pg_sys::ExecPrepareExpr(tree, self.estate) },
            PhantomData,
        )
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
                    #[cfg(feature = "pg18")]
                    return _check.ccenforced;
                    #[cfg(not(feature = "pg18"))]
                    true
                })
                .map(|check| {
                    let tree = pg_sys::stringToNode(check.ccbin).cast::<pg_sys::Node>();
                    #[cfg(feature = "pg18")]
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

    /// What is evaluated for an index, which is locked. Guarded.
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

    /// Frees what the expressions of the row before have allocated.
    pub(crate) fn begin_row(self) {
        // SAFETY: memory of nothing else.
        unsafe { unguarded::MemoryContextReset((*self.context).ecxt_per_tuple_memory) };
    }

    /// The value for a row, in the current memory; `None` for NULL. The first time PostgreSQL
    /// checks that the slot has the columns.
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

    /// Whether a condition is true for a row, or else false; `None` for NULL.
    #[inline]
    pub(crate) fn holds(self, condition: Expression<'_>, row: Slot<'_>) -> Option<bool> {
        self.value(condition, row)
            .map(|value| value.value() as u8 != 0)
    }

    /// As [`Self::holds`], leaving no memory behind.
    #[inline]
    pub(crate) fn holds_by_itself(self, condition: Expression<'_>, row: Slot<'_>) -> Option<bool> {
        self.begin_row();
        // SAFETY: there as long as the evaluator.
        let memory = unsafe { Memory::of((*self.context).ecxt_per_tuple_memory) };
        memory.within(|| self.holds(condition, row))
    }
}

/// A generated column that is computed for a row before PostgreSQL does.
pub(crate) struct Generated<'a> {
    attno: i16,
    expression: Expression<'a>,
    /// The row's value before that.
    former: Cell<Option<Datum>>,
}

impl Generated<'_> {
    /// Computes it for a row that was read as a whole; [`Self::restore`] puts back what was
    /// there.
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

/// What is evaluated for an index.
#[derive(Clone, Copy)]
pub(crate) struct IndexExpressions<'a> {
    evaluator: Evaluator<'a>,
    info: *mut pg_sys::IndexInfo,
    predicate: Option<Expression<'a>>,
}

impl IndexExpressions<'_> {
    /// Whether the row has an entry, by the predicate.
    pub(crate) fn has(&self, row: Slot<'_>) -> bool {
        self.predicate
            .is_none_or(|predicate| self.evaluator.holds(predicate, row) == Some(true))
    }

    /// Forms the row's entry.
    pub(crate) fn form(&self, row: Slot<'_>, entry: &mut Values) {
        let (values, nulls) = entry.arrays();
        // SAFETY: the row is there; the arrays hold any entry.
        unsafe {
            if !row.is_empty() {
                (*self.evaluator.context).ecxt_scantuple = row.as_ptr();
                unguarded::FormIndexDatum(
                    self.info,
                    row.as_ptr(),
                    self.evaluator.estate,
                    values,
                    nulls,
                );
            }
        }
    }
}

/// All triggers of a description.
///
/// # Safety
/// A description of PostgreSQL, or null; there, and not borrowed, as long as `'a`.
pub(super) unsafe fn triggers<'a>(
    description: *mut pg_sys::TriggerDesc,
) -> Option<&'a mut [pg_sys::Trigger]> {
    // SAFETY: as required of the caller: an array of that many.
    unsafe {
        let description = description.as_mut()?;
        let count = usize::try_from(description.numtriggers).unwrap_or(0);
        (count > 0).then(|| core::slice::from_raw_parts_mut(description.triggers, count))
    }
}

/// Whether there are BEFORE triggers for rows and this event, and all have this function.
///
/// # Safety
/// As [`triggers`].
pub(super) unsafe fn fires_only(
    description: *mut pg_sys::TriggerDesc,
    event: u32,
    function: Oid,
) -> bool {
    let wanted = pg_sys::TRIGGER_TYPE_ROW | pg_sys::TRIGGER_TYPE_BEFORE | event;
    let matches = |trigger: &&mut pg_sys::Trigger| {
        u32::from(trigger.tgtype.cast_unsigned()) & wanted == wanted
    };
    // SAFETY: as required of the caller.
    unsafe {
        description
            .as_mut()
            .is_some_and(|it| *before_row(it, event))
            && triggers(description).is_some_and(|all| {
                let mut found = all.iter_mut().filter(matches).peekable();
                found.peek().is_some() && found.all(|trigger| trigger.tgfoid == function)
            })
    }
}

/// Whether there are BEFORE triggers for rows: of UPDATE, or else INSERT.
fn before_row(description: &mut pg_sys::TriggerDesc, event: u32) -> &mut bool {
    if event == pg_sys::TRIGGER_TYPE_UPDATE {
        &mut description.trig_update_before_row
    } else {
        &mut description.trig_insert_before_row
    }
}

/// A statement that was started.
#[derive(Clone, Copy)]
pub(crate) struct Started<'a>(*mut pg_sys::EState, PhantomData<&'a pg_sys::EState>);

impl<'a> Started<'a> {
    /// # Safety
    /// The state of a statement that was started, and has not ended, as long as `'a`.
    pub(crate) unsafe fn of(estate: *mut pg_sys::EState) -> Self {
        Self(estate, PhantomData)
    }

    /// The tables that it writes to.
    pub(crate) fn targets(self) -> impl Iterator<Item = Target<'a>> {
        // SAFETY: the statement's list, which does not change.
        unsafe { lists::iter((*self.0).es_opened_result_relations) }.map(move |target| Target {
            target,
            statement: self,
        })
    }
}

/// A table that a statement writes to, which has locked it.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    target: *mut pg_sys::ResultRelInfo,
    statement: Started<'a>,
}

impl<'a> Target<'a> {
    pub(crate) fn table(self) -> Table<'a> {
        // SAFETY: open and locked as long as the statement.
        unsafe { Table::of((*self.target).ri_RelationDesc) }
    }

    /// Whether BEFORE triggers fire for rows and this event (`TRIGGER_TYPE_INSERT` or `UPDATE`),
    /// and all have this function.
    pub(crate) fn fires_only(self, event: u32, function: Oid) -> bool {
        // SAFETY: the statement's copy of the description.
        unsafe { fires_only((*self.target).ri_TrigDesc, event, function) }
    }

    /// Fires no BEFORE triggers for rows and this event in the statement.
    pub(crate) fn skip(self, event: u32) {
        // SAFETY: the statement's copy of the description, which is not borrowed.
        if let Some(description) = unsafe { (*self.target).ri_TrigDesc.as_mut() } {
            *before_row(description, event) = false;
        }
    }

    /// The columns that an UPDATE assigns to. Guarded.
    pub(crate) fn updated(self) -> impl Fn(i16) -> bool {
        // SAFETY: both belong to the statement.
        let updated = unsafe { pg_sys::ExecGetUpdatedCols(self.target, self.statement.0) };
        move |attno| {
            let bit = i32::from(attno) - pg_sys::FirstLowInvalidHeapAttributeNumber;
            // SAFETY: a set of the statement.
            unsafe { pg_sys::bms_is_member(bit, updated) }
        }
    }
}

/// An execution that only fires triggers of DELETE, for one row.
pub(crate) struct Firing<'a> {
    row: Slot<'a>,
    estate: *mut pg_sys::EState,
    target: *mut pg_sys::ResultRelInfo,
    /// For rows that are changed meanwhile; a locked one cannot be.
    recheck: *mut pg_sys::EPQState,
    /// For triggers with transition tables; null if there are none.
    capture: *mut pg_sys::TransitionCaptureState,
}

impl<'a> Firing<'a> {
    /// Without the triggers with these functions. Guarded; [`Self::free`] frees it.
    pub(crate) fn begin(row: Slot<'a>, is_left_out: impl Fn(Oid) -> bool) -> Self {
        // SAFETY: the row's table is open and locked; all is allocated with the estate, and the
        // triggers are a copy of its own.
        unsafe {
            let estate = pg_sys::CreateExecutorState();
            let target = Memory::of((*estate).es_query_cxt).within(|| {
                let size = size_of::<pg_sys::ResultRelInfo>();
                let target = pg_sys::palloc0(size).cast::<pg_sys::ResultRelInfo>();
                pg_sys::InitResultRelInfo(target, row.table().as_ptr(), 0, null_mut(), 0);
                target
            });
            for trigger in triggers((*target).ri_TrigDesc).into_iter().flatten() {
                if is_left_out(trigger.tgfoid) {
                    trigger.tgenabled = pg_sys::TRIGGER_DISABLED.cast_signed();
                }
            }
            Self {
                row,
                estate,
                target,
                recheck: null_mut(),
                capture: null_mut(),
            }
        }
    }

    /// As [`Self::begin`], for a statement of its own: [`Self::end_statement`] fires what is
    /// queued.
    pub(crate) fn begin_statement(
        row: Slot<'a>,
        is_left_out: impl Fn(Oid) -> bool,
    ) -> Statement<'a> {
        // SAFETY: as in `begin`. An error ends the subtransaction, with which what is queued
        // goes.
        unsafe {
            unguarded::AfterTriggerBeginQuery();
            let mut firing = Self::begin(row, is_left_out);
            let estate = firing.estate;
            (*estate).es_snapshot = externs::GetActiveSnapshot();
            (*estate).es_output_cid = externs::GetCurrentCommandId(true);
            Memory::of((*estate).es_query_cxt).within(|| {
                let (triggers, delete) =
                    ((*firing.target).ri_TrigDesc, pg_sys::CmdType::CMD_DELETE);
                let table = row.table().oid();
                firing.capture = pg_sys::MakeTransitionCaptureState(triggers, table, delete);
                firing.recheck = recheck(estate);
            });
            Statement(firing)
        }
    }

    /// Queues what fires after the row was deleted. Guarded.
    pub(crate) fn queue(&self) {
        let (mut tid, none) = (self.row.tid(), null_mut());
        // SAFETY: begun, for its table.
        unsafe {
            pg_sys::ExecARDeleteTriggers(
                self.estate,
                self.target,
                &mut tid,
                none,
                null_mut(),
                false,
            );
        }
    }

    /// Guarded.
    pub(crate) fn free(self) {
        // SAFETY: nothing is left to be fired.
        unsafe {
            if !self.recheck.is_null() {
                pg_sys::EvalPlanQualEnd(self.recheck);
            }
            pg_sys::ExecCloseResultRelations(self.estate);
            pg_sys::ExecResetTupleTable((*self.estate).es_tupleTable, false);
            pg_sys::FreeExecutorState(self.estate);
        }
    }
}

/// A DELETE of one row by a statement of its own.
pub(crate) struct Statement<'a>(Firing<'a>);

impl<'a> Statement<'a> {
    /// Fires the triggers around `delete`, which is given the ID of the statement's command and
    /// tells whether the row is gone; `None` if one of them keeps the row.
    pub(crate) fn delete<T>(
        self,
        delete: impl FnOnce(pg_sys::CommandId) -> (T, bool),
    ) -> (Option<T>, Firing<'a>) {
        let Firing {
            row,
            estate,
            target,
            recheck,
            capture,
        } = self.0;
        let mut tid = row.tid();
        // SAFETY: begun, for the row's table.
        let result = unsafe {
            unguarded::ExecBSDeleteTriggers(estate, target);
            let description = (*target).ri_TrigDesc.as_ref();
            let keeps = description.is_some_and(|it| it.trig_delete_before_row)
                && !unguarded::before_row_delete_triggers(estate, recheck, target, &mut tid);
            let result = (!keeps).then(|| delete((*estate).es_output_cid));
            if let Some((_, true)) = result {
                let none = null_mut();
                unguarded::ExecARDeleteTriggers(estate, target, &mut tid, none, capture, false);
            }
            unguarded::ExecASDeleteTriggers(estate, target, capture);
            unguarded::AfterTriggerEndQuery(estate);
            result
        };
        (result.map(|(result, _)| result), self.0)
    }
}

/// What an execution without a plan needs to check changed rows again. Guarded.
///
/// # Safety
/// In the estate's memory; `EvalPlanQualEnd` comes before that is freed.
unsafe fn recheck(estate: *mut pg_sys::EState) -> *mut pg_sys::EPQState {
    let none = null_mut();
    // SAFETY: as required of the caller.
    unsafe {
        let recheck = pg_sys::palloc0(size_of::<pg_sys::EPQState>()).cast::<pg_sys::EPQState>();
        #[cfg(feature = "pg15")]
        pg_sys::EvalPlanQualInit(recheck, estate, none, null_mut(), -1);
        #[cfg(not(feature = "pg15"))]
        pg_sys::EvalPlanQualInit(recheck, estate, none, null_mut(), -1, null_mut());
        recheck
    }
}

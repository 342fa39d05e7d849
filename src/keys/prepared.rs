//! A table's key plan, prepared for one statement.

use super::liveness::Liveness;
use super::plan::{self, KeyPlan};
use crate::pg::{relation, session};
use crate::settings;
use crate::store::written;
use pgrx::pg_sys;
use std::ffi::c_void;
use std::rc::Rc;

/// A generated column, computed for the new row while its keys are looked up.
#[derive(Clone, Copy)]
pub(super) struct Generated {
    pub(super) attno: i16,
    pub(super) expression: *mut pg_sys::ExprState,
    /// The new row's value before that.
    pub(super) former: Option<pg_sys::Datum>,
}

/// What must be evaluated before keys are known; all null if nothing must.
#[derive(Clone, Copy)]
pub(super) struct Evaluation {
    pub(super) estate: *mut pg_sys::EState,
    pub(super) context: *mut pg_sys::ExprContext,
    /// For each key, PostgreSQL's information on its index.
    pub(super) infos: *mut *mut pg_sys::IndexInfo,
    /// For each key, its predicate, or null.
    pub(super) predicates: *mut *mut pg_sys::ExprState,
    pub(super) generated: *mut Generated,
    pub(super) generated_count: usize,
    /// CHECK constraints. A row that violates one is not looked up: an index's expression may
    /// rely on them.
    pub(super) checks: *mut *mut pg_sys::ExprState,
    pub(super) check_count: usize,
}

impl Evaluation {
    const NONE: Self = Self {
        estate: core::ptr::null_mut(),
        context: core::ptr::null_mut(),
        infos: core::ptr::null_mut(),
        predicates: core::ptr::null_mut(),
        generated: core::ptr::null_mut(),
        generated_count: 0,
        checks: core::ptr::null_mut(),
        check_count: 0,
    };
}

/// Allocated with the statement and freed with it; nothing in it needs dropping.
#[derive(Clone, Copy)]
pub(super) struct Prepared {
    /// Null if there is nothing to do. Kept until the statement's end, even if the cache forgets
    /// it.
    pub(super) plan: *const KeyPlan,
    pub(super) liveness: Liveness,
    pub(super) evaluation: Evaluation,
}

/// For a statement that writes to the table, in `context`, which lives as long.
///
/// # Safety
/// `table` is open and locked.
pub(super) unsafe fn prepare(
    table: pg_sys::Relation,
    context: pg_sys::MemoryContext,
) -> *mut Prepared {
    // SAFETY: as required of the caller; all is allocated in the statement's context.
    unsafe {
        let former = pg_sys::MemoryContextSwitchTo(context);
        let prepared = pg_sys::palloc(size_of::<Prepared>()).cast::<Prepared>();
        prepared.write(Prepared {
            plan: core::ptr::null(),
            liveness: Liveness::NOTHING,
            evaluation: Evaluation::NONE,
        });
        if !settings::show_expired()
            && let Some(plan) = plan::of(table)
        {
            (*prepared).liveness = Liveness::of(&plan.policy);
            if session::applies_others_changes() {
                // Logical replication fires no executor hook, and its rows come with their
                // `_ts`.
                written::note_copy(&plan.policy);
            }
            if plan.needs_evaluation() {
                (*prepared).evaluation = evaluation(table, &plan);
            }
            (*prepared).plan = keep(plan, context);
        }
        pg_sys::MemoryContextSwitchTo(former);
        prepared
    }
}

/// Keeps the plan until the context is reset.
///
/// # Safety
/// `context` is a memory context.
unsafe fn keep(plan: Rc<KeyPlan>, context: pg_sys::MemoryContext) -> *const KeyPlan {
    unsafe extern "C-unwind" fn release(plan: *mut c_void) {
        // SAFETY: made by `into_raw`, and released once.
        unsafe { Rc::decrement_strong_count(plan.cast::<KeyPlan>()) }
    }
    // SAFETY: the callback is allocated in the context that calls it.
    unsafe {
        let callback = pg_sys::palloc0(size_of::<pg_sys::MemoryContextCallback>())
            .cast::<pg_sys::MemoryContextCallback>();
        let plan = Rc::into_raw(plan);
        (*callback).func = Some(release);
        (*callback).arg = plan.cast_mut().cast();
        pg_sys::MemoryContextRegisterResetCallback(context, callback);
        plan
    }
}

/// # Safety
/// `table` is open, and the executor has opened and locked its indexes.
unsafe fn evaluation(table: pg_sys::Relation, plan: &KeyPlan) -> Evaluation {
    let no_lock = pg_sys::NoLock.cast_signed();
    // SAFETY: as required of the caller.
    unsafe {
        let estate = pg_sys::CreateExecutorState();
        let context = pg_sys::MakePerTupleExprContext(estate);
        let (mut infos, mut predicates) = (vec![], vec![]);
        for key in &plan.keys {
            let index = pg_sys::index_open(key.index, pg_sys::AccessShareLock.cast_signed());
            let info = pg_sys::BuildIndexInfo(index);
            pg_sys::index_close(index, no_lock);
            predicates.push(if (*info).ii_Predicate.is_null() {
                core::ptr::null_mut()
            } else {
                pg_sys::ExecPrepareQual((*info).ii_Predicate, estate)
            });
            infos.push(info);
        }
        let generated: Vec<Generated> = plan
            .generated
            .iter()
            .map(|&attno| {
                let expression = pg_sys::build_column_default(table, i32::from(attno));
                Generated {
                    attno,
                    expression: pg_sys::ExecPrepareExpr(expression.cast(), estate),
                    former: None,
                }
            })
            .collect();
        let checks = checks(table, estate);
        Evaluation {
            estate,
            context,
            infos: relation::palloc_slice(&infos),
            predicates: relation::palloc_slice(&predicates),
            generated_count: generated.len(),
            generated: relation::palloc_slice(&generated),
            check_count: checks.len(),
            checks: relation::palloc_slice(&checks),
        }
    }
}

/// # Safety
/// `table` is open.
unsafe fn checks(
    table: pg_sys::Relation,
    estate: *mut pg_sys::EState,
) -> Vec<*mut pg_sys::ExprState> {
    // SAFETY: as required of the caller; a table's constraints are an array of that many.
    unsafe {
        let Some(constraints) = (*(*table).rd_att).constr.as_ref() else {
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
                let tree = pg_sys::expand_generated_columns_in_expr(tree, table, 1);
                pg_sys::ExecPrepareExpr(tree.cast(), estate)
            })
            .collect()
    }
}

//! The rows of an INSERT as they arrive from its source, before triggers fire for them.
//!
//! PostgreSQL takes each row from the plan below its ModifyTable by a pointer to a function
//! (`ExecProcNode`), and looks only then whether the table has BEFORE triggers. For one statement that
//! function is ours, which asks whether they are to fire for this row.
//!
//! Unguarded, as [`super::unguarded`], unless a function says otherwise.

#![allow(ffi_unwind_calls, reason = "PostgreSQL's own longjmp passes")]

use super::context::{Context, Mark};
use super::executor::Query;
use super::firing::Target;
use super::table::Slot;
use super::unguarded;
use crate::error::Error;
use pgrx::PgSqlErrorCode;
use pgrx::pg_sys::{self, PlanState, TupleTableSlot};
use pgrx::prelude::*;

/// What is asked for each row; what it allocates is freed with the row.
type Fires<'a> = dyn Fn(Slot<'_>) -> bool + 'a;

#[derive(Clone, Copy)]
struct Watch {
    /// The source's own function.
    next: pg_sys::ExecProcNodeMtd,
    target: Target<'static>,
    fires: *const Fires<'static>,
}

/// One in a statement.
static WATCH: Mark<Watch> = Mark::new();

impl Target<'_> {
    /// Has the BEFORE ROW triggers of an INSERT into the table fire for those rows only for which
    /// `fires` is true. It reads a row as the statement gives it: what a trigger or a generated column
    /// puts there is not in it. Guarded.
    ///
    /// # Safety
    /// The target is the only one of the query, which has just been started; `fires` does not panic, and
    /// holds nothing that needs dropping when an error passes.
    pub(crate) unsafe fn fire_before_rows<F>(self, query: Query<'_>, memory: Context<'_>, fires: F)
    where
        F: Fn(Slot<'_>) -> bool,
    {
        let Some(source) = query.source_of_insertion() else {
            return;
        };
        let fires: &Fires<'_> = memory.put_one(fires);
        // SAFETY: what is watched, and what is asked, live as long as the query's memory, and the source
        // is asked for rows no longer.
        unsafe {
            let watch = Watch {
                next: (*source).ExecProcNodeReal,
                target: core::mem::transmute::<Target<'_>, Target<'static>>(self),
                fires: core::mem::transmute::<&Fires<'_>, &Fires<'static>>(fires),
            };
            WATCH.keep(memory, watch);
            // `ExecProcNode` is the one of the first row, or one that measures; both lead to this one.
            (*source).ExecProcNodeReal = Some(next);
        }
    }
}

/// In the place of the source's own function.
unsafe extern "C-unwind" fn next(source: *mut PlanState) -> *mut TupleTableSlot {
    // SAFETY: a node whose function was replaced, in whose query's memory the watch is kept.
    unsafe {
        let estate = (*source).state;
        let watch = WATCH.find(Context::of((*estate).es_query_cxt));
        let Some((watch, next)) = watch.and_then(|watch| Some((watch, watch.next?))) else {
            lost();
        };
        let row = next(source);
        if row.is_null() || u32::from((*row).tts_flags) & pg_sys::TTS_FLAG_EMPTY != 0 {
            return row;
        }
        let scratch = match (*estate).es_per_tuple_exprcontext {
            none if none.is_null() => unguarded::MakePerTupleExprContext(estate),
            there => there,
        };
        let scratch = Context::of((*scratch).ecxt_per_tuple_memory);
        let arrived = Slot::of(row, watch.target.table());
        let fire = scratch.within(|| (*watch.fires)(arrived));
        let triggers = watch.target.triggers();
        if fire {
            triggers.show(pg_sys::TRIGGER_TYPE_INSERT);
        } else {
            triggers.hide(pg_sys::TRIGGER_TYPE_INSERT);
        }
        row
    }
}

#[pg_guard]
extern "C-unwind" fn lost() -> ! {
    Error::new(
        PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
        "the source of an INSERT has lost what watches it",
    )
    .raise()
}

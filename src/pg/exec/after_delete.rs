//! The AFTER triggers of a DELETE whose rows a query's receiver deletes, as COPY FROM fires those
//! of INSERT: without a ModifyTable node.

#![allow(ffi_unwind_calls, reason = "PostgreSQL's own longjmp passes")]

use super::table::Table;
use super::trigger_queue::FiringScope;
use crate::pg::abi::context::Context;
use crate::pg::abi::unguarded;
use core::marker::PhantomData;
use core::ptr::null_mut;
use pgrx::pg_sys::{self, CmdType, ItemPointerData};

/// A DELETE that has begun: the triggers of its rows are queued until [`Self::end`].
///
/// Nothing is dropped: after an error the end of the transaction empties the queue and frees the
/// memory.
pub(crate) struct AfterDelete<'a> {
    estate: *mut pg_sys::EState,
    target: *mut pg_sys::ResultRelInfo,
    /// Collects the rows for transition tables; null if no trigger has one.
    capture: *mut pg_sys::TransitionCaptureState,
    table: PhantomData<Table<'a>>,
}

impl<'a> AfterDelete<'a> {
    /// Begins. Triggers that fire before, and WHEN conditions, are not for this type
    /// (`Triggers::delete_only_queues`). Guarded.
    pub(crate) fn begin(table: Table<'a>) -> Self {
        // SAFETY: open and locked for 'a; all is allocated with the estate, the triggers are a copy
        // of the table's.
        unsafe {
            pg_sys::AfterTriggerBeginQuery();
            let estate = pg_sys::CreateExecutorState();
            let (target, capture) = Context::of((*estate).es_query_cxt).within(|| {
                let size = size_of::<pg_sys::ResultRelInfo>();
                let target = pg_sys::palloc0(size).cast::<pg_sys::ResultRelInfo>();
                pg_sys::InitResultRelInfo(target, table.as_ptr(), 0, null_mut(), 0);
                let triggers = (*target).ri_TrigDesc;
                let delete = CmdType::CMD_DELETE;
                let capture = pg_sys::MakeTransitionCaptureState(triggers, table.oid(), delete);
                (target, capture)
            });
            Self {
                estate,
                target,
                capture,
                table: PhantomData,
            }
        }
    }

    /// Queues the triggers of a row that has just been deleted. Unguarded.
    #[inline]
    pub(crate) fn queue(&self, mut tid: ItemPointerData) {
        let (foreign, is_update) = (null_mut(), false);
        // SAFETY: `begin` has set the state up for the table that the row is of.
        unsafe {
            let (target, capture) = (self.target, self.capture);
            unguarded::ExecARDeleteTriggers(
                self.estate,
                target,
                &mut tid,
                foreign,
                capture,
                is_update,
            );
        }
    }

    /// Ends the statement: fires what is queued, and triggers for statements if a row was
    /// `deleted`. Guarded.
    pub(crate) fn end(self, deleted: bool) {
        // SAFETY: begun, and not ended. The snapshot that is pushed is popped, and stands for the
        // statement's, by which functions that are not VOLATILE read.
        unsafe {
            pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
            pg_sys::UpdateActiveSnapshotCommandId();
            if deleted {
                pg_sys::ExecASDeleteTriggers(self.estate, self.target, self.capture);
            }
            let firing = FiringScope::begin();
            pg_sys::AfterTriggerEndQuery(self.estate);
            firing.end();
            pg_sys::PopActiveSnapshot();
            pg_sys::ExecCloseResultRelations(self.estate);
            pg_sys::ExecResetTupleTable((*self.estate).es_tupleTable, false);
            pg_sys::FreeExecutorState(self.estate);
        }
    }
}

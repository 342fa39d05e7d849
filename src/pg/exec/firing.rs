//! Triggers that a statement fires, and those of a DELETE that runs without a statement.
//!
//! Unguarded, as [`crate::pg::abi::unguarded`], unless a function says otherwise.

#![allow(ffi_unwind_calls, reason = "PostgreSQL's own longjmp passes")]

use super::table::{Slot, Table};
use crate::pg::abi::context::Context;
use crate::pg::abi::error_context::{Explanation, explaining_references};
use crate::pg::abi::{externs, lists, unguarded};
use crate::pg::session::scoped::Scoped;
use core::marker::PhantomData;
use core::ptr::null_mut;
use pgrx::pg_sys::{self, ItemPointerData, Oid};

/// Triggers of a table, from the relation cache or a statement.
#[derive(Clone, Copy)]
pub(crate) struct Triggers<'a>(*const *mut pg_sys::TriggerDesc, PhantomData<&'a ()>);

impl<'a> Table<'a> {
    /// Its triggers from the relation cache.
    #[inline]
    pub(crate) fn triggers(self) -> Triggers<'a> {
        // SAFETY: there as long as the relation is open.
        unsafe { Triggers::at(&raw const (*self.as_ptr()).trigdesc) }
    }
}

impl Triggers<'_> {
    /// # Safety
    /// The pointer to a trigger description of PostgreSQL, valid for `'a`.
    #[inline]
    pub(in crate::pg) unsafe fn at(place: *const *mut pg_sys::TriggerDesc) -> Self {
        Self(place, PhantomData)
    }

    /// Passes the description to `work`, which must not keep it.
    #[inline]
    fn with<T>(self, work: impl FnOnce(&mut pg_sys::TriggerDesc) -> T) -> Option<T> {
        // SAFETY: the place is there, and `work` makes PostgreSQL replace nothing.
        unsafe { (*self.0).as_mut() }.map(work)
    }

    fn each(self, mut see: impl FnMut(&mut pg_sys::Trigger)) {
        self.with(|all| {
            for at in 0..usize::try_from(all.numtriggers).unwrap_or(0) {
                // SAFETY: `numtriggers` is the length of the array.
                see(unsafe { &mut *all.triggers.add(at) });
            }
        });
    }

    fn any(self, is_so: impl Fn(&pg_sys::Trigger) -> bool) -> bool {
        let mut found = false;
        self.each(|trigger| found |= is_so(trigger));
        found
    }

    /// Whether a DELETE may fire a trigger. Triggers of referencing foreign keys and disabled ones
    /// count.
    pub(crate) fn concern_delete(self) -> bool {
        let concern = |all: &mut pg_sys::TriggerDesc| {
            all.trig_delete_before_row
                || all.trig_delete_after_row
                || all.trig_delete_instead_row
                || all.trig_delete_before_statement
                || all.trig_delete_after_statement
                || all.trig_delete_old_table
        };
        self.with(concern) == Some(true)
    }

    /// Whether a DELETE fires triggers that are none of PostgreSQL's own.
    pub(crate) fn fire_own_at_delete(self) -> bool {
        self.any(|trigger| {
            events(trigger) & pg_sys::TRIGGER_TYPE_DELETE != 0 && !trigger.tgisinternal
        })
    }

    /// Whether the triggers that a DELETE may fire only queue the row: they are AFTER triggers,
    /// without a WHEN condition, which is evaluated at once.
    pub(crate) fn delete_only_queues(self) -> bool {
        let fires_before = |all: &mut pg_sys::TriggerDesc| {
            all.trig_delete_before_row
                || all.trig_delete_instead_row
                || all.trig_delete_before_statement
        };
        let has_condition = |trigger: &pg_sys::Trigger| {
            events(trigger) & pg_sys::TRIGGER_TYPE_DELETE != 0 && !trigger.tgqual.is_null()
        };
        self.with(fires_before) != Some(true) && !self.any(has_condition)
    }

    /// Whether a trigger calls one of these functions.
    pub(crate) fn call_one_of(self, functions: &[u32]) -> bool {
        self.any(|trigger| functions.contains(&trigger.tgfoid.to_u32()))
    }

    /// Whether there are BEFORE UPDATE triggers for rows, and all call this function.
    pub(crate) fn fire_only_at_update(self, function: Oid) -> bool {
        self.with(|all| all.trig_update_before_row) == Some(true)
            && !self.has_before_row(pg_sys::TRIGGER_TYPE_UPDATE, function)
    }

    /// Whether there is a BEFORE ROW trigger for this event that calls another function.
    pub(crate) fn has_before_row(self, event: u32, except: Oid) -> bool {
        let wanted = pg_sys::TRIGGER_TYPE_ROW | pg_sys::TRIGGER_TYPE_BEFORE | event;
        self.any(|trigger| events(trigger) & wanted == wanted && trigger.tgfoid != except)
    }

    /// Keeps the BEFORE UPDATE triggers for rows from firing.
    pub(crate) fn hide_update(self) {
        self.with(|all| all.trig_update_before_row = false);
    }
}

/// For which events, when and how often it fires (`TRIGGER_TYPE_…`).
fn events(trigger: &pg_sys::Trigger) -> u32 {
    u32::from(trigger.tgtype.cast_unsigned())
}

/// A table that a statement writes to, which has locked it.
#[derive(Clone, Copy)]
pub(crate) struct TriggerTable<'a> {
    target: *mut pg_sys::ResultRelInfo,
    estate: *mut pg_sys::EState,
    statement: PhantomData<&'a pg_sys::EState>,
}

impl<'a> TriggerTable<'a> {
    /// The tables that a statement writes to.
    ///
    /// # Safety
    /// The statement has started, and does not end during `'a`.
    pub(crate) unsafe fn all(estate: *mut pg_sys::EState) -> impl Iterator<Item = Self> {
        // SAFETY: as required of the caller: a list that does not change.
        unsafe { lists::iter((*estate).es_opened_result_relations) }.map(move |target| Self {
            target,
            estate,
            statement: PhantomData,
        })
    }

    pub(in crate::pg) fn as_ptr(self) -> *mut pg_sys::ResultRelInfo {
        self.target
    }

    pub(in crate::pg) fn state(self) -> *mut pg_sys::EState {
        self.estate
    }

    pub(crate) fn table(self) -> Table<'a> {
        // SAFETY: open and locked as long as the statement.
        unsafe { Table::of((*self.target).ri_RelationDesc) }
    }

    /// The statement's copy of the table's triggers.
    pub(crate) fn triggers(self) -> Triggers<'a> {
        // SAFETY: the executor keeps the table's description until the statement ends.
        unsafe { Triggers::at(&raw const (*self.target).ri_TrigDesc) }
    }

    /// The columns that an UPDATE assigns to. Guarded.
    pub(crate) fn updated(self) -> impl Fn(i16) -> bool {
        // SAFETY: the result relation is one of this executor state.
        let updated = unsafe { pg_sys::ExecGetUpdatedCols(self.target, self.estate) };
        move |attno| {
            let bit = i32::from(attno) - pg_sys::FirstLowInvalidHeapAttributeNumber;
            // SAFETY: a set of the statement; it fails for negative numbers only.
            unsafe { externs::raising::bms_is_member(bit, updated) }
        }
    }
}

/// An executor state that only fires the DELETE triggers of rows that are deleted without a ModifyTable node, as
/// COPY FROM fires those of INSERT.
///
/// Nothing is dropped: after an error the end of the (sub)transaction empties the queue and frees the memory.
#[derive(Clone, Copy)]
pub(crate) struct Firing<'a> {
    estate: *mut pg_sys::EState,
    target: *mut pg_sys::ResultRelInfo,
    /// BEFORE triggers need it for rows that change meanwhile, which a locked row cannot. Null without such
    /// triggers.
    recheck: *mut pg_sys::EPQState,
    /// For triggers with transition tables; null without such triggers.
    capture: *mut pg_sys::TransitionCaptureState,
    table: PhantomData<Table<'a>>,
}

impl<'a> Firing<'a> {
    /// Begins without the triggers that call these functions. Guarded.
    fn begin(table: Table<'a>, is_left_out: impl Fn(Oid) -> bool) -> Self {
        // SAFETY: the table is open and locked for 'a; all is allocated with the estate, and the triggers are a
        // copy of its own.
        unsafe {
            let estate = pg_sys::CreateExecutorState();
            let target = Context::of((*estate).es_query_cxt).within(|| {
                let size = size_of::<pg_sys::ResultRelInfo>();
                let target = pg_sys::palloc0(size).cast::<pg_sys::ResultRelInfo>();
                pg_sys::InitResultRelInfo(target, table.as_ptr(), 0, null_mut(), 0);
                target
            });
            Triggers::at(&raw const (*target).ri_TrigDesc).each(|trigger| {
                if is_left_out(trigger.tgfoid) {
                    trigger.tgenabled = pg_sys::TRIGGER_DISABLED.cast_signed();
                }
            });
            Self {
                estate,
                target,
                recheck: null_mut(),
                capture: null_mut(),
                table: PhantomData,
            }
        }
    }

    /// As [`Self::begin`], but as a statement of its own: [`Self::end`], or [`Self::delete`] and [`Self::free`], end
    /// it. Guarded.
    pub(crate) fn begin_statement(table: Table<'a>, is_left_out: impl Fn(Oid) -> bool) -> Self {
        // SAFETY: as in `begin`; a statement runs, so there is an active snapshot.
        unsafe {
            pg_sys::AfterTriggerBeginQuery();
            let mut firing = Self::begin(table, is_left_out);
            let estate = firing.estate;
            (*estate).es_snapshot = pg_sys::GetActiveSnapshot();
            (*estate).es_output_cid = pg_sys::GetCurrentCommandId(true);
            Context::of((*estate).es_query_cxt).within(|| {
                let (triggers, delete) =
                    ((*firing.target).ri_TrigDesc, pg_sys::CmdType::CMD_DELETE);
                firing.capture = pg_sys::MakeTransitionCaptureState(triggers, table.oid(), delete);
                if firing.fires_before_row() {
                    firing.recheck = recheck(estate);
                }
            });
            firing
        }
    }

    /// Queues the AFTER triggers of a deleted row in the statement that runs, without those that call these
    /// functions. Guarded.
    pub(crate) fn queue_in_statement(row: Slot<'_>, is_left_out: impl Fn(Oid) -> bool) {
        let firing = Firing::begin(row.table(), is_left_out);
        let tid = row.tid();
        // SAFETY: nothing within the boundary is to be dropped.
        unsafe {
            at_boundary!(firing.queue(tid););
        }
        firing.free();
    }

    fn fires_before_row(self) -> bool {
        // SAFETY: null, or the copy of the table's triggers that `begin` has made.
        let triggers = unsafe { (*self.target).ri_TrigDesc.as_ref() };
        triggers.is_some_and(|it| it.trig_delete_before_row)
    }

    /// Queues the AFTER triggers of a row that has just been deleted.
    #[inline]
    pub(crate) fn queue(self, mut tid: ItemPointerData) {
        let (foreign, is_update) = (null_mut(), false);
        // SAFETY: `begin` has set the state up for the table that the row is of.
        unsafe {
            unguarded::ExecARDeleteTriggers(
                self.estate,
                self.target,
                &mut tid,
                foreign,
                self.capture,
                is_update,
            );
        }
    }

    /// Fires what is queued, and AFTER triggers for statements.
    fn fire(self, fires_statement: bool) {
        // SAFETY: `begin_statement` has set the state up.
        unsafe {
            if fires_statement {
                unguarded::ExecASDeleteTriggers(self.estate, self.target, self.capture);
            }
            let scope = FIRING.enter(());
            unguarded::AfterTriggerEndQuery(self.estate);
            FIRING.leave(scope);
        }
    }

    /// Fires the triggers before and after `delete`, which gets the statement's command ID and
    /// returns whether the row was deleted. `None` if a trigger prevents the deletion. Errors of references are
    /// explained. Guarded, but `delete` has nothing to drop.
    pub(crate) fn delete<T>(
        self,
        tid: ItemPointerData,
        explanation: &'static Explanation,
        delete: impl FnOnce(pg_sys::CommandId) -> (T, bool),
    ) -> Option<T> {
        // SAFETY: nothing within the boundary, which puts PostgreSQL's stack of contexts back after an error, is to
        // be dropped.
        unsafe {
            at_boundary!(explaining_references(explanation, || {
                self.delete_unguarded(tid, delete)
            }))
        }
    }

    fn delete_unguarded<T>(
        self,
        mut tid: ItemPointerData,
        delete: impl FnOnce(pg_sys::CommandId) -> (T, bool),
    ) -> Option<T> {
        let (estate, target, recheck) = (self.estate, self.target, self.recheck);
        // SAFETY: `begin_statement` has set the state up for the row's table.
        let result = unsafe {
            unguarded::ExecBSDeleteTriggers(estate, target);
            let keeps = self.fires_before_row()
                && !unguarded::before_row_delete_triggers(estate, recheck, target, &mut tid);
            (!keeps).then(|| delete((*estate).es_output_cid))
        };
        if let Some((_, true)) = result {
            self.queue(tid);
        }
        self.fire(true);
        result.map(|(result, _)| result)
    }

    /// Ends a statement without BEFORE triggers and WHEN conditions ([`Triggers::delete_only_queues`]): fires what is
    /// queued, and triggers for statements if a row was `deleted`. Guarded.
    pub(crate) fn end(self, deleted: bool) {
        // SAFETY: the snapshot that is pushed is popped, and stands for the statement's, by which functions that
        // are not VOLATILE read. Nothing within the boundary is to be dropped.
        unsafe {
            pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
            pg_sys::UpdateActiveSnapshotCommandId();
            at_boundary!(self.fire(deleted););
            pg_sys::PopActiveSnapshot();
        }
        self.free();
    }

    /// Frees the executor state. Guarded.
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

/// `EvalPlanQualInit`, the same in all versions. Guarded.
///
/// # Safety
/// In the estate's memory; `EvalPlanQualEnd` comes before that is freed.
unsafe fn recheck(estate: *mut pg_sys::EState) -> *mut pg_sys::EPQState {
    let none = null_mut();
    // SAFETY: as required of the caller.
    unsafe {
        let recheck = pg_sys::palloc0(size_of::<pg_sys::EPQState>()).cast::<pg_sys::EPQState>();
        #[cfg(not(since16))]
        pg_sys::EvalPlanQualInit(recheck, estate, none, null_mut(), -1);
        #[cfg(since16)]
        pg_sys::EvalPlanQualInit(recheck, estate, none, null_mut(), -1, null_mut());
        recheck
    }
}

/// The statements whose AFTER triggers are being fired: what they set off may join that statement's queue.
///
/// A foreign key's trigger runs a plan that PostgreSQL keeps for it, and frees where it asks for the plan
/// again and finds it invalid. If the triggers of what that plan's run sets off fired within it, they
/// would ask for it again, and free it while it runs. In the statement's queue they fire after it.
pub(crate) static FIRING: Scoped<()> = Scoped::new();

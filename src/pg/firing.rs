//! Triggers that a statement fires, and those of a DELETE without one.
//!
//! Unguarded, as [`super::unguarded`], unless a function says otherwise.

#![allow(ffi_unwind_calls, reason = "PostgreSQL's own longjmp passes")]

use super::context::Context;
use super::table::{Slot, Table};
use super::{externs, lists, unguarded};
use core::marker::PhantomData;
use core::ptr::null_mut;
use pgrx::pg_sys::{self, Oid};

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

/// A table that a statement writes to, which has locked it.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    target: *mut pg_sys::ResultRelInfo,
    estate: *mut pg_sys::EState,
    statement: PhantomData<&'a pg_sys::EState>,
}

impl<'a> Target<'a> {
    /// The tables that a statement writes to.
    ///
    /// # Safety
    /// The statement was started, and has not ended, as long as `'a`.
    pub(crate) unsafe fn all(estate: *mut pg_sys::EState) -> impl Iterator<Item = Self> {
        // SAFETY: as required of the caller: a list that does not change.
        unsafe { lists::iter((*estate).es_opened_result_relations) }.map(move |target| Self {
            target,
            estate,
            statement: PhantomData,
        })
    }

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
        let updated = unsafe { pg_sys::ExecGetUpdatedCols(self.target, self.estate) };
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
            let target = Context::of((*estate).es_query_cxt).within(|| {
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
            Context::of((*estate).es_query_cxt).within(|| {
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
            let (target, capture) = (self.target, null_mut());
            pg_sys::ExecARDeleteTriggers(self.estate, target, &mut tid, none, capture, false);
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

/// `EvalPlanQualInit`, the same in all versions. Guarded.
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

//! Looks up the keys of a new row as the constraints will, and removes the expired rows that
//! hold them.
//!
//! Unguarded, with nothing to drop: PostgreSQL's errors pass through.

#![allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]

use super::liveness::Liveness;
use super::plan::{Key, KeyPlan};
use super::prepared::{Evaluation, Prepared};
use super::removal::{self, Removal};
use super::row::New;
use crate::clock::execution::{self, Running};
use crate::clock::moment;
use crate::clock::now::now;
use crate::pg::{externs, unguarded};
use core::mem::MaybeUninit;
use pgrx::pg_sys::{self, Datum, TupleTableSlot};

/// How often a row may be found changed: a trigger on it may change it for ever.
const MAX_CHANGES: u32 = 1000;

const MAX_PARTS: usize = pg_sys::INDEX_MAX_KEYS as usize;

/// The values of a key, or of a row's index entry.
struct Values {
    values: [Datum; MAX_PARTS],
    nulls: [bool; MAX_PARTS],
}

impl Values {
    const EMPTY: Self = Self {
        values: [Datum::null(); MAX_PARTS],
        nulls: [false; MAX_PARTS],
    };
}

/// Removes the expired rows that hold a key of the new row. True if the statement had to wait
/// for another session.
///
/// # Safety
/// `prepared` is that of the row's table in this statement, and has a plan.
pub(super) unsafe extern "C-unwind" fn free_keys(new: &New, prepared: &Prepared) -> bool {
    let mut wait = Wait { outer: None };
    // A MERGE that has waited for a row, expired by now, inserts in its place.
    if externs::last_wait() > now() {
        wait.is_over();
    }
    // SAFETY: as required of the caller.
    unsafe {
        let (plan, evaluation) = (&*prepared.plan, &prepared.evaluation);
        if !evaluation.context.is_null() {
            unguarded::MemoryContextReset((*evaluation.context).ecxt_per_tuple_memory);
            (*new.slot).tts_tableOid = (*new.relation).rd_id;
            new.generate(evaluation);
            if !new.passes_checks(evaluation) {
                // PostgreSQL will report it.
                new.restore(evaluation);
                return wait.end();
            }
        }
        for (at, key) in plan.keys.iter().enumerate() {
            if new.changes(key) {
                let lookup = Lookup {
                    new,
                    plan,
                    liveness: &prepared.liveness,
                    key,
                    at,
                    evaluation,
                };
                lookup.free(&mut wait);
            }
        }
        new.restore(evaluation);
    }
    wait.end()
}

/// Waits for sessions that write the same keys (C14). Holds nothing that needs dropping: an
/// error ends it with the statement.
struct Wait {
    /// The time by which the statement judged rows before its first wait.
    outer: Option<Running>,
}

impl Wait {
    /// A wait has ended: from here on, rows are judged by the time after it.
    fn is_over(&mut self) {
        if moment::waits_count() {
            let outer = execution::advance(moment::after_wait());
            self.outer.get_or_insert(outer);
        }
    }

    /// Puts the former time back. True if there was a wait.
    fn end(self) -> bool {
        if let Some(outer) = self.outer {
            outer.resume();
        }
        self.outer.is_some()
    }
}

/// A key of a new row that is looked up.
struct Lookup<'a> {
    new: &'a New,
    plan: &'a KeyPlan,
    liveness: &'a Liveness,
    key: &'a Key,
    /// The key's index in the plan.
    at: usize,
    evaluation: &'a Evaluation,
}

impl Lookup<'_> {
    /// # Safety
    /// The key is one of the row's table.
    unsafe fn free(&self, wait: &mut Wait) {
        let mut sought = Values::EMPTY;
        // SAFETY: the key is one of the row's table.
        unsafe {
            if !self.is_in_index() {
                return;
            }
            self.fill(self.new.slot, &mut sought);
            // NULLs conflict with nothing, unless the constraint is NULLS NOT DISTINCT.
            let parts = self.key.parts.len();
            if !self.key.nulls_not_distinct && sought.nulls[..parts].contains(&true) {
                return;
            }
            let no_lock = pg_sys::NoLock.cast_signed();
            // The executor has locked it: it opens the indexes before it fires triggers.
            let index = unguarded::index_open(self.key.index, no_lock);
            if !(*(*index).rd_index).indisready {
                unguarded::index_close(index, no_lock);
                return;
            }
            let slot = unguarded::table_slot_create(self.new.relation, core::ptr::null_mut());
            let mut changes = 0;
            while self.remove(index, &sought, slot, wait, &mut changes) {}
            unguarded::ExecDropSingleTupleTableSlot(slot);
            unguarded::index_close(index, no_lock);
        }
    }

    /// Whether the new row will have an entry in a partial index.
    ///
    /// # Safety
    /// As [`Self::free`].
    unsafe fn is_in_index(&self) -> bool {
        if !self.key.needs_evaluation {
            return true;
        }
        // SAFETY: an evaluation has a predicate, or null, for each key.
        unsafe {
            let predicate = *self.evaluation.predicates.add(self.at);
            (*self.evaluation.context).ecxt_scantuple = self.new.slot;
            predicate.is_null() || unguarded::holds(predicate, self.evaluation.context)
        }
    }

    /// Reads the key of the row in the slot.
    ///
    /// # Safety
    /// The slot holds a row of the key's table.
    unsafe fn fill(&self, slot: *mut TupleTableSlot, into: &mut Values) {
        // SAFETY: a row of the table; the arrays hold any key.
        unsafe {
            if self.key.needs_evaluation {
                (*self.evaluation.context).ecxt_scantuple = slot;
                unguarded::FormIndexDatum(
                    *self.evaluation.infos.add(self.at),
                    slot,
                    self.evaluation.estate,
                    into.values.as_mut_ptr(),
                    into.nulls.as_mut_ptr(),
                );
                return;
            }
            for (at, part) in self.key.parts.iter().enumerate() {
                let value = unguarded::slot_value(slot, part.attno);
                into.nulls[at] = value.is_none();
                into.values[at] = value.unwrap_or(Datum::null());
            }
        }
    }

    /// Removes the expired rows that hold the key. True: look again, as another session was
    /// changing one. `changes` counts how often that happened.
    ///
    /// # Safety
    /// Index and table are open and locked; the slot is for rows of the table.
    unsafe fn remove(
        &self,
        index: pg_sys::Relation,
        sought: &Values,
        slot: *mut TupleTableSlot,
        wait: &mut Wait,
        changes: &mut u32,
    ) -> bool {
        // SAFETY: as required of the caller.
        unsafe {
            let mut dirty = pg_sys::SnapshotData {
                snapshot_type: pg_sys::SnapshotType::SNAPSHOT_DIRTY,
                ..Default::default()
            };
            let mut scankeys = MaybeUninit::<[pg_sys::ScanKeyData; MAX_PARTS]>::uninit();
            let first = scankeys.as_mut_ptr().cast::<pg_sys::ScanKeyData>();
            let count = self.initialize(first, sought);
            let relation = self.new.relation;
            let scan = unguarded::begin_index_scan(relation, index, &mut dirty, count);
            unguarded::index_rescan(scan, first, count, core::ptr::null_mut(), 0);
            let forward = pg_sys::ScanDirection::ForwardScanDirection;
            while unguarded::index_getnext_slot(scan, forward, slot) {
                // Another session writes or deletes it, and may yet roll back. The constraint
                // would wait, too.
                let writer = if dirty.xmin == pg_sys::InvalidTransactionId {
                    dirty.xmax
                } else {
                    dirty.xmin
                };
                let may_expire = self.key.waits
                    && writer != pg_sys::InvalidTransactionId
                    && moment::waits_count();
                if self.new.replaces(&(*slot).tts_tid)
                    || (!may_expire && self.liveness.is_live(slot))
                    || ((*scan).xs_recheck && !self.conflicts(slot, sought))
                {
                    continue;
                }
                if writer == pg_sys::InvalidTransactionId {
                    match removal::remove(relation, slot, self.plan.deletion) {
                        Removal::Gone | Removal::Kept => continue,
                        Removal::Changed => *changes += 1,
                    }
                    unguarded::index_endscan(scan);
                    return *changes < MAX_CHANGES;
                }
                unguarded::index_endscan(scan);
                if dirty.speculativeToken == 0 {
                    let reason = pg_sys::XLTW_Oper::XLTW_InsertIndex;
                    unguarded::XactLockTableWait(writer, relation, &mut (*slot).tts_tid, reason);
                } else {
                    unguarded::SpeculativeInsertionWait(writer, dirty.speculativeToken);
                }
                wait.is_over();
                return true;
            }
            unguarded::index_endscan(scan);
            false
        }
    }

    /// Fills in the scan keys; returns how many there are.
    ///
    /// # Safety
    /// There is room for a key of `MAX_PARTS` columns at `first`.
    unsafe fn initialize(&self, first: *mut pg_sys::ScanKeyData, sought: &Values) -> i32 {
        let mut count = 0;
        for part in &self.key.parts {
            let flags = if sought.nulls[count] {
                pg_sys::SK_ISNULL | pg_sys::SK_SEARCHNULL
            } else {
                0
            };
            // SAFETY: as required of the caller.
            unsafe {
                unguarded::ScanKeyEntryInitialize(
                    first.add(count),
                    flags.cast_signed(),
                    count as i16 + 1,
                    part.strategy,
                    pg_sys::InvalidOid,
                    part.collation,
                    part.procedure,
                    sought.values[count],
                );
            }
            count += 1;
        }
        count as i32
    }

    /// Whether the key of the row in the slot really conflicts, where the index alone cannot
    /// tell.
    ///
    /// # Safety
    /// As [`Self::fill`].
    unsafe fn conflicts(&self, slot: *mut TupleTableSlot, sought: &Values) -> bool {
        let mut found = Values::EMPTY;
        // SAFETY: as required of the caller.
        unsafe {
            self.fill(slot, &mut found);
            for (at, part) in self.key.parts.iter().enumerate() {
                let (value, wanted) = (found.values[at], sought.values[at]);
                if found.nulls[at]
                    || unguarded::OidFunctionCall2Coll(
                        part.procedure,
                        part.collation,
                        value,
                        wanted,
                    )
                    .value() as u8
                        == 0
                {
                    return false;
                }
            }
        }
        true
    }
}

//! Looks the keys of a new row up, as the constraints will, and has the expired rows
//! removed that hold them.
//!
//! Plain functions with nothing to drop: PostgreSQL's errors pass through them.

#![allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]

use super::liveness::Judge;
use super::plan::{Key, Plan};
use super::prepared::{Evaluation, Prepared};
use super::removal::{self, Removal};
use super::row::New;
use crate::clock::execution::{self, Running};
use crate::clock::moment;
use crate::clock::now::now;
use crate::pg::{externs, unguarded};
use core::mem::MaybeUninit;
use pgrx::pg_sys::{self, Datum, TupleTableSlot};

/// So often may a row be found changed: a trigger on it may do so for ever.
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

/// Removes the expired rows that hold a key of the new row. Whether the statement had to
/// wait for somebody.
///
/// # Safety
/// `prepared` is that of the row's table in this statement, and has a plan.
pub(super) unsafe extern "C-unwind" fn free_keys(new: &New, prepared: &Prepared) -> bool {
    let mut wait = Wait { outer: None };
    // For a row, perhaps, that has expired by now: a MERGE inserts in its place.
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
                // PostgreSQL will say so.
                new.restore(evaluation);
                return wait.end();
            }
        }
        for (at, key) in plan.keys.iter().enumerate() {
            if new.changes(key) {
                let lookup = Lookup {
                    new,
                    plan,
                    judge: &prepared.judge,
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

/// Waits for others who write the same keys (C14). Nothing in it needs dropping: an error
/// ends it with the statement.
struct Wait {
    /// By which time the statement judged before.
    outer: Option<Running>,
}

impl Wait {
    /// One is over: from here on, rows are judged by the time after it.
    fn is_over(&mut self) {
        if moment::waits_count() {
            let outer = execution::advance(moment::after_wait());
            self.outer.get_or_insert(outer);
        }
    }

    /// Whether there was one.
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
    plan: &'a Plan,
    judge: &'a Judge,
    key: &'a Key,
    /// The key's place in the plan.
    at: usize,
    evaluation: &'a Evaluation,
}

impl Lookup<'_> {
    unsafe fn free(&self, wait: &mut Wait) {
        let mut sought = Values::EMPTY;
        // SAFETY: the key is one of the row's table.
        unsafe {
            if !self.is_in_index() {
                return;
            }
            self.fill(self.new.slot, &mut sought);
            // Nulls conflict with nothing, unless the constraint says so.
            let parts = self.key.parts.len();
            if !self.key.nulls_not_distinct && sought.nulls[..parts].contains(&true) {
                return;
            }
            let no_lock = pg_sys::NoLock.cast_signed();
            // Locked by the executor, which opens the indexes before it fires triggers.
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

    /// The key of the row in the slot.
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

    /// Removes the expired rows that hold the key. True: look again, somebody was
    /// changing one. `changes` counts how often one was found changed.
    unsafe fn remove(
        &self,
        index: pg_sys::Relation,
        sought: &Values,
        slot: *mut TupleTableSlot,
        wait: &mut Wait,
        changes: &mut u32,
    ) -> bool {
        // SAFETY: index and table are open and locked, and the slot is of the table.
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
                // Somebody is writing or deleting it: what becomes of it is not known
                // yet. The constraint would wait as well.
                let writer = if dirty.xmin == pg_sys::InvalidTransactionId {
                    dirty.xmax
                } else {
                    dirty.xmin
                };
                let may_expire = self.key.waits
                    && writer != pg_sys::InvalidTransactionId
                    && moment::waits_count();
                if self.new.replaces(&(*slot).tts_tid)
                    || (!may_expire && self.judge.is_live(slot))
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

    /// Fills in the conditions of the scan; how many there are.
    unsafe fn initialize(&self, first: *mut pg_sys::ScanKeyData, sought: &Values) -> i32 {
        let mut count = 0;
        for part in &self.key.parts {
            let flags = if sought.nulls[count] {
                pg_sys::SK_ISNULL | pg_sys::SK_SEARCHNULL
            } else {
                0
            };
            // SAFETY: there is room for the conditions of any key.
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

    /// Whether the row in the slot really has a key in conflict, where the index
    /// alone cannot tell.
    unsafe fn conflicts(&self, slot: *mut TupleTableSlot, sought: &Values) -> bool {
        let mut found = Values::EMPTY;
        // SAFETY: the slot holds a row of the table.
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

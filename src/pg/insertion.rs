//! Work around the insertion of a statement's rows, in batches where COPY forms them.
//!
//! COPY passes rows to the table access method in batches only where no BEFORE INSERT trigger
//! sees each. So for a while the relation cache's entry of the table points to a copy of heap's
//! `TableAmRoutine`, which differs in the functions that insert. Of this session only; the copy
//! is never freed, and does what heap does where no work is registered.

#![allow(ffi_unwind_calls, reason = "PostgreSQL's own longjmp passes")]

use super::batch::Batch;
use super::externs::GetHeapamTableAmRoutine as heap;
use super::invalidation;
use super::relation::Open;
use super::table::Table;
use super::xact;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use pgrx::pg_sys::TupleTableSlot;
use pgrx::pg_sys::{self, BulkInsertStateData, CommandId, Oid, Relation, TableAmRoutine};
use std::cell::RefCell;

/// Work around an insertion. Unguarded: PostgreSQL's errors pass through it.
pub(crate) trait Around: 'static {
    /// Before the rows are stored.
    fn before(&self, rows: Batch<'_>);
    /// When they are stored, and have no index entries yet.
    fn after(&self, rows: Batch<'_>);
    /// At the end, also at an abort: raises no error and looks nothing up.
    fn end(&self, table: Table<'_>);
}

struct Active {
    /// The reference keeps the entry of the relation cache where it is.
    table: Open,
    work: Box<dyn Around>,
    /// The nest level of the transaction.
    level: i32,
}

thread_local! {
    static ACTIVE: RefCell<Vec<Active>> = const { RefCell::new(vec![]) };
}

/// The copy, once it is made.
static ROUTINE: AtomicPtr<TableAmRoutine> = AtomicPtr::new(null_mut());

/// Registers for invalidations; once, at load.
pub(crate) fn init() {
    invalidation::listen(reapply);
}

fn routine() -> *mut TableAmRoutine {
    let made = ROUTINE.load(Ordering::Relaxed);
    if !made.is_null() {
        return made;
    }
    // SAFETY: a constant of the server.
    let copy = TableAmRoutine {
        multi_insert: Some(multi_insert),
        tuple_insert: Some(tuple_insert),
        ..unsafe { *heap() }
    };
    let made = Box::into_raw(Box::new(copy));
    ROUTINE.store(made, Ordering::Relaxed);
    made
}

/// Begins to do the work around insertions into the table, a heap; false if something else
/// already replaces its access method. [`end`] or [`end_from`] follows.
pub(crate) fn begin(table: Open, work: Box<dyn Around>) -> bool {
    let relation = table.as_ptr();
    // SAFETY: open.
    unsafe {
        if (*relation).rd_tableam != heap() {
            return false;
        }
        let level = xact::nest_level();
        ACTIVE.with_borrow_mut(|active| active.push(Active { table, work, level }));
        (*relation).rd_tableam = routine();
    }
    true
}

/// Ends the work that began last.
pub(crate) fn end() {
    let last = ACTIVE.with_borrow_mut(Vec::pop);
    last.into_iter().for_each(Active::end);
}

/// At an abort: ends what began at this nest level of the transaction, or above.
pub(crate) fn end_from(level: i32) {
    while ACTIVE.with_borrow(|active| active.last().is_some_and(|it| it.level >= level)) {
        end();
    }
}

impl Active {
    /// Also at an abort, before PostgreSQL drops the reference.
    fn end(self) {
        let relation = self.table.as_ptr();
        self.work.end(self.table.table());
        // SAFETY: there is a reference to it.
        unsafe {
            if (*relation).rd_tableam == routine().cast_const() {
                (*relation).rd_tableam = heap();
            }
        }
    }
}

/// PostgreSQL has built the relation's entry anew, or those of all. As a callback for
/// invalidations it raises no error and looks nothing up.
fn reapply(relid: Oid) {
    ACTIVE.with(|active| {
        for it in active.try_borrow().iter().flat_map(|active| active.iter()) {
            let relation = it.table.as_ptr();
            // SAFETY: there is a reference to it.
            unsafe {
                let is_meant = relid == pg_sys::InvalidOid || relid == (*relation).rd_id;
                if is_meant && (*relation).rd_tableam == heap() {
                    (*relation).rd_tableam = routine();
                }
            }
        }
    });
}

/// The work around insertions into the relation. Valid until the statement ends.
fn work_of(relation: Relation) -> Option<*const dyn Around> {
    ACTIVE.with_borrow(|active| {
        let found = active.iter().find(|it| it.table.as_ptr() == relation);
        found.map(|it| &raw const *it.work)
    })
}

/// # Safety
/// An open table, and slots with rows of it.
unsafe fn around(relation: Relation, slots: &[*mut TupleTableSlot], insert: impl FnOnce()) {
    let Some(work) = work_of(relation) else {
        return insert();
    };
    // SAFETY: as required of the caller; only the statement that inserts ends the work.
    unsafe {
        let rows = Batch::of(Table::of(relation), slots);
        (*work).before(rows);
        insert();
        (*work).after(rows);
    }
}

unsafe extern "C-unwind" fn multi_insert(
    relation: Relation,
    slots: *mut *mut TupleTableSlot,
    count: i32,
    command: CommandId,
    options: i32,
    state: *mut BulkInsertStateData,
) {
    // SAFETY: PostgreSQL's arguments; heap has all functions.
    unsafe {
        let rows = core::slice::from_raw_parts(slots, usize::try_from(count).unwrap_or(0));
        around(relation, rows, || {
            if let Some(insert) = (*heap()).multi_insert {
                insert(relation, slots, count, command, options, state);
            }
        });
    }
}

unsafe extern "C-unwind" fn tuple_insert(
    relation: Relation,
    slot: *mut TupleTableSlot,
    command: CommandId,
    options: i32,
    state: *mut BulkInsertStateData,
) {
    // SAFETY: PostgreSQL's arguments; heap has all functions.
    unsafe {
        around(relation, &[slot], || {
            if let Some(insert) = (*heap()).tuple_insert {
                insert(relation, slot, command, options, state);
            }
        });
    }
}

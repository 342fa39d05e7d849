//! Batches of rows that are being inserted.
//!
//! Unguarded, as [`super::unguarded`].

#![allow(ffi_unwind_calls, reason = "PostgreSQL's own longjmp passes")]

use super::scan::{Part, Scan};
use super::table::{Slot, Table};
use super::unguarded;
use super::unique::Unique;
use core::cell::Cell;
use core::cmp::Ordering;
use core::ffi::c_void;
use core::mem::MaybeUninit;
use pgrx::pg_sys::{self, Datum, FmgrInfo, Oid};

/// Rows that are about to be stored, or were just stored and have no index entries yet.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a> {
    table: Table<'a>,
    slots: &'a [*mut pg_sys::TupleTableSlot],
}

/// One flag for each row of a batch.
#[derive(Clone, Copy)]
pub(crate) struct Flags<'a>(&'a [Cell<bool>]);

impl Flags<'_> {
    /// Sets the flag; returns whether it was set.
    pub(crate) fn set(self, at: usize) -> bool {
        self.0.get(at).is_some_and(|flag| flag.replace(true))
    }
}

impl<'a> Batch<'a> {
    /// # Safety
    /// Slots with rows of the table, for `'a`.
    #[inline]
    pub(super) unsafe fn of(table: Table<'a>, slots: &'a [*mut pg_sys::TupleTableSlot]) -> Self {
        Self { table, slots }
    }

    #[inline]
    pub(crate) fn table(self) -> Table<'a> {
        self.table
    }

    /// The rows, in their order.
    #[inline]
    pub(crate) fn rows(self) -> impl Iterator<Item = Slot<'a>> {
        let table = self.table;
        // SAFETY: rows of the table.
        let slot = move |&slot| unsafe { Slot::of(slot, table) };
        self.slots.iter().map(slot)
    }

    fn row(self, at: usize) -> Slot<'a> {
        // SAFETY: a row of the table.
        unsafe { Slot::of(self.slots[at], self.table) }
    }

    /// Flags that are not set, in the current memory context.
    pub(crate) fn flags(self) -> Flags<'a> {
        let count = self.slots.len();
        // SAFETY: allocates as many bytes; zero is false. COPY resets the context after the batch.
        unsafe {
            let flags = unguarded::palloc0(count).cast::<Cell<bool>>();
            Flags(core::slice::from_raw_parts(flags, count))
        }
    }

    /// Reads the entries of a B-tree whose first column lies between the least and the greatest of
    /// the batch. Calls `see` with each row version until that returns false; returns true at the
    /// end. False, too, where the range cannot be told.
    pub(crate) fn each_in_range(
        self,
        unique: &Unique,
        mut see: impl FnMut(&Scan<'_>, Slot<'_>) -> bool,
    ) -> bool {
        let (Some(order), Some(first)) = (&unique.order, unique.parts.first()) else {
            return false;
        };
        let mut at_least = Procedure::new(order.at_least, first.collation);
        let (mut least, mut greatest) = (None, None);
        for row in self.rows() {
            if unique.parts.iter().any(|it| row.value(it.attno).is_none()) {
                if unique.nulls_not_distinct {
                    return false;
                }
                continue;
            }
            let value = row.value(first.attno);
            if let Some(value) = value {
                if least.is_none_or(|least| !at_least.holds(value, least)) {
                    least = Some(value);
                }
                if greatest.is_none_or(|greatest| at_least.holds(value, greatest)) {
                    greatest = Some(value);
                }
            }
        }
        let Some(range) = least.zip(greatest) else {
            // NULLs conflict with nothing.
            return true;
        };
        let (table, bounds) = (self.table, (order.at_least, order.at_most));
        let seen_all = table.with_index(unique.index, |index| {
            table.with_slot(|slot| {
                // SAFETY: the operators and values are those of the index's first column.
                unsafe {
                    index.scan_range(first, bounds, range, slot, |scan| {
                        let mut goes_on = true;
                        while goes_on && scan.next() {
                            goes_on = see(scan, slot);
                        }
                        goes_on
                    })
                }
            })
        });
        // An index that takes no entries yet rejects nothing.
        seen_all.unwrap_or(true)
    }

    /// Calls `see` with the position and the row of each that has the key of a later one.
    pub(crate) fn each_followed(self, unique: &Unique, mut see: impl FnMut(usize, Slot<'a>)) {
        let Some(order) = &unique.order else {
            return;
        };
        let mut procedures = [const { MaybeUninit::uninit() }; MAX_PARTS];
        for ((to, &procedure), part) in procedures.iter_mut().zip(&order.compare).zip(&unique.parts)
        {
            to.write(Procedure::new(procedure, part.collation));
        }
        let mut sorting = Sorting {
            batch: self,
            parts: &unique.parts,
            procedures: procedures.as_mut_ptr().cast(),
        };
        // SAFETY: there is room for all positions; the comparison gets two of them.
        let sorted = unsafe {
            let (mut count, size) = (0, size_of::<usize>());
            let positions = unguarded::palloc0(self.slots.len() * size).cast::<usize>();
            for (at, row) in self.rows().enumerate() {
                let is_null = |part: &Part| row.value(part.attno).is_none();
                if unique.nulls_not_distinct || !unique.parts.iter().any(is_null) {
                    positions.add(count).write(at);
                    count += 1;
                }
            }
            let arg = (&raw mut sorting).cast();
            unguarded::qsort_arg(positions.cast(), count, size, Some(compare), arg);
            core::slice::from_raw_parts(positions, count)
        };
        for (&at, &next) in sorted.iter().zip(sorted.iter().skip(1)) {
            if sorting.order(at, next) == Ordering::Equal {
                see(at, self.row(at));
            }
        }
    }
}

const MAX_PARTS: usize = pg_sys::INDEX_MAX_KEYS as usize;

/// A function of two values of a column, looked up once.
struct Procedure {
    function: FmgrInfo,
    collation: Oid,
}

impl Procedure {
    fn new(procedure: Oid, collation: Oid) -> Self {
        let mut function = FmgrInfo::default();
        // SAFETY: raises if there is no such function; what it keeps lives as long as the batch.
        unsafe { unguarded::fmgr_info(procedure, &mut function) };
        Self {
            function,
            collation,
        }
    }

    fn call(&mut self, a: Datum, b: Datum) -> Datum {
        // SAFETY: the callers pass values of its column.
        unsafe { unguarded::FunctionCall2Coll(&mut self.function, self.collation, a, b) }
    }

    fn holds(&mut self, a: Datum, b: Datum) -> bool {
        self.call(a, b).value() as u8 != 0
    }

    /// By a B-tree's comparison function.
    fn order(&mut self, a: Datum, b: Datum) -> Ordering {
        (self.call(a, b).value() as i32).cmp(&0)
    }
}

/// The order of a batch's rows by a key.
struct Sorting<'a> {
    batch: Batch<'a>,
    parts: &'a [Part],
    /// One for each part.
    procedures: *mut Procedure,
}

impl Sorting<'_> {
    fn order(&mut self, a: usize, b: usize) -> Ordering {
        let (a, b) = (self.batch.row(a), self.batch.row(b));
        for (at, part) in self.parts.iter().enumerate() {
            let order = match (a.value(part.attno), b.value(part.attno)) {
                // SAFETY: there is one for each part.
                (Some(a), Some(b)) => unsafe { (*self.procedures.add(at)).order(a, b) },
                (a, b) => a.is_none().cmp(&b.is_none()),
            };
            if order != Ordering::Equal {
                return order;
            }
        }
        Ordering::Equal
    }
}

/// For `qsort_arg`: by key, then by position.
unsafe extern "C-unwind" fn compare(
    a: *const c_void,
    b: *const c_void,
    sorting: *mut c_void,
) -> i32 {
    // SAFETY: called with two positions and the sorting of `each_followed`.
    unsafe {
        let (a, b) = (*a.cast::<usize>(), *b.cast::<usize>());
        let order = (*sorting.cast::<Sorting<'_>>()).order(a, b);
        order.then(a.cmp(&b)) as i32
    }
}

//! The new row, and the one it replaces.

use super::plan::Key;
use super::prepared::Evaluation;
use crate::pg::unguarded;
use pgrx::pg_sys::{self, TriggerData, TupleTableSlot};

/// The row that is about to be written.
#[derive(Clone, Copy)]
pub(super) struct New {
    pub(super) relation: pg_sys::Relation,
    pub(super) slot: *mut TupleTableSlot,
    /// The version that an UPDATE replaces, and its place on disk.
    old: Option<(*mut TupleTableSlot, pg_sys::ItemPointerData)>,
}

impl New {
    /// # Safety
    /// `data` is that of a BEFORE INSERT OR UPDATE trigger for a row.
    pub(super) unsafe fn of(data: *mut TriggerData) -> Self {
        // SAFETY: as required of the caller.
        unsafe {
            let (old, new) = ((*data).tg_trigslot, (*data).tg_newslot);
            if (*data).tg_newtuple.is_null() {
                return Self {
                    relation: (*data).tg_relation,
                    slot: old,
                    old: None,
                };
            }
            Self {
                relation: (*data).tg_relation,
                slot: new,
                old: Some((old, (*(*data).tg_trigtuple).t_self)),
            }
        }
    }

    /// Whether this place on disk is that of the version to be replaced.
    pub(super) fn replaces(&self, place: &pg_sys::ItemPointerData) -> bool {
        self.old.is_some_and(|(_, old)| same_place(&old, place))
    }

    /// Whether the row's key can be another than that of the version it replaces.
    ///
    /// # Safety
    /// Both slots hold rows; reading them may raise. `key` is one of their table.
    #[allow(
        ffi_unwind_calls,
        reason = "an error that unwinds from C is PostgreSQL's own longjmp"
    )]
    pub(super) unsafe fn changes(&self, key: &Key) -> bool {
        let Some((old, _)) = self.old else {
            return true;
        };
        if key.always_changes {
            return true;
        }
        for source in &key.sources {
            // SAFETY: as required of the caller: a column of the table.
            let same = unsafe {
                let before = unguarded::slot_value(old, source.attno);
                let after = unguarded::slot_value(self.slot, source.attno);
                match (before, after) {
                    (Some(before), Some(after)) => unguarded::datum_image_eq(
                        before,
                        after,
                        source.by_value,
                        i32::from(source.length),
                    ),
                    (None, None) => true,
                    _ => false,
                }
            };
            if !same {
                return true;
            }
        }
        false
    }

    /// Fills in the generated columns that keys are made of, which PostgreSQL computes
    /// only after the triggers; [`Self::restore`] puts back what was there.
    ///
    /// # Safety
    /// `evaluation` is that of the row's table; expressions may raise.
    #[allow(
        ffi_unwind_calls,
        reason = "an error that unwinds from C is PostgreSQL's own longjmp"
    )]
    pub(super) unsafe fn generate(&self, evaluation: &Evaluation) {
        if evaluation.generated_count == 0 {
            return;
        }
        // SAFETY: as required of the caller; the slot has all columns of the table.
        unsafe {
            let natts = (*(*self.slot).tts_tupleDescriptor).natts;
            // A partition's row may come with all columns at hand, and then refuses to
            // be asked for them.
            if natts > i32::from((*self.slot).tts_nvalid) {
                unguarded::slot_getsomeattrs_int(self.slot, natts);
            }
            (*evaluation.context).ecxt_scantuple = self.slot;
            let mut at = 0;
            while at < evaluation.generated_count {
                let generated = &mut *evaluation.generated.add(at);
                let value = unguarded::value_of(generated.expression, evaluation.context);
                generated.former = unguarded::slot_value(self.slot, generated.attno);
                self.set(generated.attno, value);
                at += 1;
            }
        }
    }

    /// Whether the row satisfies the CHECK constraints of its table.
    ///
    /// # Safety
    /// As [`Self::generate`], after it.
    pub(super) unsafe fn passes_checks(&self, evaluation: &Evaluation) -> bool {
        let mut at = 0;
        while at < evaluation.check_count {
            // SAFETY: as required of the caller; an array of that many expressions.
            let result = unsafe {
                (*evaluation.context).ecxt_scantuple = self.slot;
                unguarded::value_of(*evaluation.checks.add(at), evaluation.context)
            };
            // NULL is no violation.
            if result.is_some_and(|value| value.value() as u8 == 0) {
                return false;
            }
            at += 1;
        }
        true
    }

    /// Undoes [`Self::generate`].
    ///
    /// # Safety
    /// After it, with the same evaluation.
    pub(super) unsafe fn restore(&self, evaluation: &Evaluation) {
        let mut at = 0;
        while at < evaluation.generated_count {
            // SAFETY: an array of that many columns.
            unsafe {
                let generated = &*evaluation.generated.add(at);
                self.set(generated.attno, generated.former);
            }
            at += 1;
        }
    }

    unsafe fn set(&self, attno: i16, value: Option<pg_sys::Datum>) {
        let at = usize::from(attno.cast_unsigned()) - 1;
        // SAFETY: a column of the slot, all of whose values are there.
        unsafe {
            *(*self.slot).tts_isnull.add(at) = value.is_none();
            *(*self.slot).tts_values.add(at) = value.unwrap_or(pg_sys::Datum::from(0));
        }
    }
}

/// Whether the two are one place on disk.
pub(super) fn same_place(a: &pg_sys::ItemPointerData, b: &pg_sys::ItemPointerData) -> bool {
    let parts = |p: &pg_sys::ItemPointerData| (p.ip_blkid.bi_hi, p.ip_blkid.bi_lo, p.ip_posid);
    parts(a) == parts(b)
}

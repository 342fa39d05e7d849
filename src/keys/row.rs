//! The new row, and the one it replaces.

use super::plan::UniqueKey;
use super::prepared_plan::Evaluation;
use crate::pg::exec::call::BeforeWrite;
use crate::pg::exec::table::Slot;
use pgrx::pg_sys::{Datum, ItemPointerData};

/// The row that is about to be written.
#[derive(Clone, Copy)]
pub(super) struct NewRow<'a> {
    pub(super) row: Slot<'a>,
    /// The version that an UPDATE replaces, and its TID.
    old: Option<(Slot<'a>, ItemPointerData)>,
}

impl<'a> NewRow<'a> {
    pub(super) fn of(write: BeforeWrite<'a>) -> Self {
        Self {
            row: write.new_row(),
            old: write.old_row(),
        }
    }

    /// Whether it is inserted, and replaces no version.
    pub(super) fn is_inserted(&self) -> bool {
        self.old.is_none()
    }

    /// Whether this is the TID of the version to be replaced.
    pub(super) fn replaces(&self, tid: &ItemPointerData) -> bool {
        self.old.is_some_and(|(_, old)| same_tid(&old, tid))
    }

    /// Whether an UPDATE leaves the column as it is, whose values are passed by value.
    pub(super) fn keeps(&self, attno: i16) -> bool {
        let value = |row: Slot<'_>| row.value(attno).map(Datum::value);
        self.old
            .is_some_and(|(old, _)| value(old) == value(self.row))
    }

    /// Whether the row's key may differ from that of the version it replaces.
    pub(super) fn changes(&self, key: &UniqueKey) -> bool {
        self.old.is_none_or(|(old, _)| {
            let differs = |&source| !self.row.has_same(old, source);
            key.always_changes || key.sources.iter().any(differs)
        })
    }

    /// Computes the generated columns that keys use, which PostgreSQL does only after the
    /// triggers; [`Self::restore`] puts back what was there.
    pub(super) fn generate(&self, evaluation: &Evaluation<'_>) {
        if !evaluation.generated.is_empty() {
            self.row.read_all();
        }
        for generated in evaluation.generated {
            generated.compute(evaluation.evaluator, self.row);
        }
    }

    /// Whether the row satisfies the CHECK constraints of its table. NULL is no violation.
    pub(super) fn passes_checks(&self, evaluation: &Evaluation<'_>) -> bool {
        let passes = |&check| evaluation.evaluator.holds(check, self.row) != Some(false);
        evaluation.checks.iter().all(passes)
    }

    /// Undoes [`Self::generate`].
    pub(super) fn restore(&self, evaluation: &Evaluation<'_>) {
        for generated in evaluation.generated {
            generated.restore(evaluation.evaluator, self.row);
        }
    }
}

/// Whether the two TIDs are equal.
pub(super) fn same_tid(a: &ItemPointerData, b: &ItemPointerData) -> bool {
    let parts = |p: &ItemPointerData| (p.ip_blkid.bi_hi, p.ip_blkid.bi_lo, p.ip_posid);
    parts(a) == parts(b)
}

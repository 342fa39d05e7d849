//! A plan that is about to be executed.

use super::lists;
use pgrx::pg_sys::{Expr, Oid, PlanRowMark, PlannedStmt, RangeTblEntry, RowMarkType, TargetEntry};

/// A plan of the planner.
#[derive(Clone, Copy)]
pub(crate) struct Plan<'a>(&'a PlannedStmt);

impl<'a> Plan<'a> {
    /// # Safety
    /// A plan, which is only read meanwhile.
    pub(crate) unsafe fn new(plan: *const PlannedStmt) -> Self {
        // SAFETY: as required of the caller.
        Self(unsafe { &*plan })
    }

    fn relid(self, varno: i32) -> Option<Oid> {
        // SAFETY: a list of entries, counted from 1.
        unsafe { Some((*lists::nth::<RangeTblEntry>(self.0.rtable, varno - 1)?).relid) }
    }

    /// The tables that it writes to.
    pub(crate) fn targets(self) -> impl Iterator<Item = Oid> {
        // SAFETY: a list of numbers of entries.
        unsafe { lists::ints(self.0.resultRelations) }.filter_map(move |at| self.relid(at))
    }

    /// The tables whose rows it locks for the statement's own sake.
    pub(crate) fn locked(self) -> impl Iterator<Item = Oid> {
        // SAFETY: a list of marks.
        let marks = unsafe { lists::iter::<PlanRowMark>(self.0.rowMarks).map(|mark| *mark) };
        marks
            .filter(|mark| is_lock(mark.markType))
            .filter_map(move |mark| self.relid(mark.rti.cast_signed()))
    }

    /// What the plan below the top gives the column.
    pub(crate) fn given(self, attno: i16) -> Option<*mut Expr> {
        // SAFETY: a tree of plans, with target lists.
        unsafe {
            let rows = (*self.0.planTree).lefttree.as_ref()?;
            let mut entries = lists::iter::<TargetEntry>(rows.targetlist);
            let entry = entries.find(|&entry| (*entry).resno == attno)?;
            Some((*entry).expr)
        }
    }
}

fn is_lock(mark: RowMarkType::Type) -> bool {
    [
        RowMarkType::ROW_MARK_EXCLUSIVE,
        RowMarkType::ROW_MARK_NOKEYEXCLUSIVE,
        RowMarkType::ROW_MARK_SHARE,
        RowMarkType::ROW_MARK_KEYSHARE,
    ]
    .contains(&mark)
}

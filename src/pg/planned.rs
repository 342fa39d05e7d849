//! A plan that is about to be executed.

use super::lists;
use super::planner_input::Ref;
use pgrx::pg_sys::{Expr, Oid, PlanRowMark, PlannedStmt, RangeTblEntry, RowMarkType, TargetEntry};

/// A plan of the planner.
pub(crate) type Plan<'a> = Ref<'a, PlannedStmt>;

impl Plan<'_> {
    fn relid(self, varno: i32) -> Option<Oid> {
        // SAFETY: a list of entries, counted from 1.
        unsafe { Some((*lists::nth::<RangeTblEntry>(self.read().rtable, varno - 1)?).relid) }
    }

    /// The tables that it writes to.
    pub(crate) fn targets(self) -> impl Iterator<Item = Oid> {
        // SAFETY: a list of numbers of entries.
        unsafe { lists::ints(self.read().resultRelations) }.filter_map(move |at| self.relid(at))
    }

    /// The tables whose rows it locks for the statement's own sake.
    pub(crate) fn locked(self) -> impl Iterator<Item = Oid> {
        // SAFETY: a list of marks.
        let marks = unsafe { lists::iter::<PlanRowMark>(self.read().rowMarks).map(|mark| *mark) };
        // As PostgreSQL's RowMarkRequiresRowShareLock.
        marks
            .filter(|mark| mark.markType <= RowMarkType::ROW_MARK_KEYSHARE)
            .filter_map(move |mark| self.relid(mark.rti.cast_signed()))
    }

    /// What the plan below the top gives the column.
    pub(crate) fn given(self, attno: i16) -> Option<*mut Expr> {
        // SAFETY: a tree of plans, with target lists.
        unsafe {
            let rows = (*self.read().planTree).lefttree.as_ref()?;
            let mut entries = lists::iter::<TargetEntry>(rows.targetlist);
            let entry = entries.find(|&entry| (*entry).resno == attno)?;
            Some((*entry).expr)
        }
    }
}

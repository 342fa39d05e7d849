//! A plan that is about to be executed.

use super::planner_input::Ref;
use crate::pg::abi::lists;
use crate::pg::catalog::expressions;
use pgrx::pg_sys::{Oid, PlanRowMark, PlannedStmt, RangeTblEntry, RowMarkType, TargetEntry};

/// A plan of the planner.
pub(crate) type PlannerResult<'a> = Ref<'a, PlannedStmt>;

impl PlannerResult<'_> {
    fn relid(self, varno: i32) -> Option<Oid> {
        // SAFETY: the planner puts range table entries into this list; a plan counts them from 1.
        unsafe { Some((*lists::nth::<RangeTblEntry>(self.read().rtable, varno - 1)?).relid) }
    }

    /// The tables that it writes to.
    pub(crate) fn targets(self) -> impl Iterator<Item = Oid> {
        // SAFETY: the planner has completed the plan, so its result relations are set.
        unsafe { lists::targets(&self.read()) }.filter_map(move |at| self.relid(at))
    }

    /// The tables whose rows it locks, as FOR UPDATE does.
    pub(crate) fn locked(self) -> impl Iterator<Item = Oid> {
        // SAFETY: the planner puts PlanRowMarks, and nothing else, into this list.
        let marks = unsafe { lists::iter::<PlanRowMark>(self.read().rowMarks).map(|mark| *mark) };
        // As PostgreSQL's RowMarkRequiresRowShareLock.
        let marked = marks
            .filter(|mark| mark.markType <= RowMarkType::ROW_MARK_KEYSHARE)
            .filter_map(move |mark| self.relid(mark.rti.cast_signed()));
        #[cfg(since19)]
        let marked = marked.chain(self.targets().filter(move |_| self.locks_on_conflict()));
        marked
    }

    /// Whether it has an INSERT … ON CONFLICT DO SELECT FOR UPDATE, or with another lock.
    #[cfg(since19)]
    pub(crate) fn locks_on_conflict(self) -> bool {
        use pgrx::pg_sys::{LockClauseStrength, ModifyTable, NodeTag, OnConflictAction};
        let top = self.read().planTree.cast::<ModifyTable>();
        // Those of the WITH clause are on top of subplans.
        // SAFETY: a list of plans, some of which are null.
        let below = unsafe { lists::iter::<ModifyTable>(self.read().subplans) };
        below.chain([top]).any(|plan| {
            // SAFETY: null or a node, which tells its type.
            unsafe { plan.as_ref() }.is_some_and(|plan| {
                plan.plan.type_ == NodeTag::T_ModifyTable
                    && plan.onConflictAction == OnConflictAction::ONCONFLICT_SELECT
                    && plan.onConflictLockStrength != LockClauseStrength::LCS_NONE
            })
        })
    }

    /// The function that decides which value the plan below the top node gives the column
    /// ([`nodes::case_timestamptz`]).
    pub(crate) fn asked_for(self, attno: i16) -> Option<Oid> {
        // SAFETY: a tree of plans, with target lists of expressions.
        unsafe {
            let rows = (*self.read().planTree).lefttree.as_ref()?;
            let mut entries = lists::iter::<TargetEntry>(rows.targetlist);
            let entry = entries.find(|&entry| (*entry).resno == attno)?;
            expressions::case_asks((*entry).expr)
        }
    }
}

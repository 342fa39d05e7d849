//! A table of the query being planned.

use super::planner_input::{QueryTree, RangeTableEntry, Ref};
use crate::pg::abi::externs::raising;
use crate::pg::abi::lists;
use crate::pg::catalog::Attribute;
use crate::pg::catalog::expressions;
use core::ptr::null_mut;
use pgrx::pg_sys::{self, Expr, PlannerInfo, RelOptInfo};

/// `PARTITION_STRATEGY_RANGE`: a macro in 15, an enum from 16 on.
const STRATEGY_RANGE: u8 = b'r';

/// So that the planner makes the same plan as without the filter.
pub(crate) const FILTER_SELECTIVITY: f64 = 1.0;

/// A relation of the query, while the planner reads its catalog data.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct PlannedTable<'a> {
    root: Ref<'a, PlannerInfo>,
    rel: Ref<'a, RelOptInfo>,
}

impl<'a> PlannedTable<'a> {
    /// # Safety
    /// The arguments of `get_relation_info_hook`, whose call lasts for `'a`.
    pub(crate) unsafe fn new(root: *mut PlannerInfo, rel: *mut RelOptInfo) -> Self {
        // SAFETY: as required of the caller.
        let (root, rel) = unsafe { (Ref::new(root), Ref::new(rel)) };
        Self { root, rel }
    }

    #[inline]
    pub(crate) fn read(self) -> RelOptInfo {
        self.rel.read()
    }

    /// The query that has it in its range table.
    pub(crate) fn query(self) -> QueryTree<'a> {
        // SAFETY: the planner's root points to the query that it plans, which outlives the hook.
        unsafe { QueryTree::new(self.root.read().parse) }
    }

    pub(crate) fn entry(self) -> RangeTableEntry<'a> {
        self.entry_at(self.read().relid)
    }

    fn entry_at(self, varno: u32) -> RangeTableEntry<'a> {
        // SAFETY: the array has an entry for each number in use.
        let entry = unsafe { Ref::new(*self.root.read().simple_rte_array.add(varno as usize)) };
        let query = self.query();
        RangeTableEntry {
            query,
            varno,
            entry,
        }
    }

    /// Its ancestors in the range table, nearest first.
    pub(crate) fn parents(self) -> impl Iterator<Item = RangeTableEntry<'a>> {
        let mut varno = self.read().relid;
        core::iter::from_fn(move || {
            let array = self.root.read().append_rel_array;
            // SAFETY: if there is an array, it has a place for each number in use.
            varno = unsafe {
                (!array.is_null())
                    .then(|| *array.add(varno as usize))?
                    .as_ref()?
            }
            .parent_relid;
            Some(self.entry_at(varno))
        })
    }

    /// Whether the query writes to it.
    pub(crate) fn is_target(self) -> bool {
        self.query().target_number() == self.read().relid
    }

    /// The entry of the table that the query names: its own, or that of the topmost table above it.
    pub(crate) fn queried(self) -> RangeTableEntry<'a> {
        let above = self.parents().take_while(|entry| entry.table().is_some());
        above.last().unwrap_or_else(|| self.entry())
    }

    /// The partitioned tables that the query reads it through, nearest first: none if it is not
    /// read as a partition.
    pub(crate) fn partitioned_parents(self) -> impl Iterator<Item = RangeTableEntry<'a>> {
        let partitioned = pg_sys::RELKIND_PARTITIONED_TABLE;
        self.parents()
            .take_while(move |entry| entry.read().relkind.cast_unsigned() == partitioned)
    }

    /// Adds a condition after the existing ones.
    ///
    /// # Safety
    /// A boolean expression on the table, in the planner's memory context.
    pub(crate) unsafe fn append(self, condition: *mut Expr) {
        // SAFETY: as required of the caller; nothing here is to be dropped when an error passes.
        unsafe {
            let rel = self.rel.as_ptr();
            at_boundary!(let info = restriction(self.root.as_ptr(), condition);
                (*rel).baserestrictinfo = raising::lappend((*rel).baserestrictinfo, info.cast()););
        }
    }

    /// Adds a condition before the existing ones. For [`nodes::filter_call`] it also sets the
    /// planner's cached estimates, which saves calling the support function each time.
    ///
    /// # Safety
    /// As [`Self::append`].
    pub(crate) unsafe fn put_first(self, condition: *mut Expr) {
        // SAFETY: as in `append`.
        unsafe {
            let rel = self.rel.as_ptr();
            at_boundary!(let info = restriction(self.root.as_ptr(), condition);
                if expressions::is_filter_call(condition) {
                    set_estimates(info);
                }
                (*rel).baserestrictinfo = raising::lcons(info.cast(), (*rel).baserestrictinfo););
            (*rel).baserestrict_min_security = 0;
        }
    }

    /// Adds conditions at the lowest security level, unless they are already there. Those that are
    /// free are evaluated before all others, the table's row-level security included.
    ///
    /// # Safety
    /// As [`Self::append`].
    pub(crate) unsafe fn add_security_conditions(self, conditions: &[*mut Expr]) {
        if conditions.is_empty() {
            return;
        }
        // SAFETY: as required of the caller. Each cell of the list has the conditions of a level, as
        // a list that is null for none.
        unsafe {
            let levels = &raw mut (*self.entry().entry.as_ptr()).securityQuals;
            if (*levels).is_null() {
                *levels = pg_sys::lappend(null_mut(), null_mut());
                let level = &raw mut (*self.root.as_ptr()).qual_security_level;
                *level = (*level).max(1);
            }
            let lowest = &raw mut (*(**levels).elements).ptr_value;
            for condition in conditions {
                *lowest = pg_sys::list_append_unique((*lowest).cast(), condition.cast()).cast();
            }
        }
    }

    /// Makes the planner check conditions for parallel safety: it has already checked the query,
    /// and skips later checks if that was safe.
    pub(crate) fn mind_parallel_hazards(self) {
        // SAFETY: the state of the planning under way.
        unsafe { mind_parallel_hazards(&self.root.read()) };
    }

    /// Whether the column is the first partition key of a table partitioned by RANGE.
    pub(crate) fn is_partitioned_by(self, column: &Attribute) -> bool {
        let (scheme, keys) = (self.read().part_scheme, self.read().partexprs);
        // SAFETY: a partitioned relation has a scheme and lists of expressions.
        unsafe {
            let is_range =
                |scheme: &pg_sys::PartitionSchemeData| scheme.strategy as u8 == STRATEGY_RANGE;
            let column = || expressions::var(self.read().relid, column);
            scheme.as_ref().is_some_and(is_range)
                && !keys.is_null()
                && lists::iter::<Expr>(*keys).any(|key| expressions::same(key, column()))
        }
    }

    /// Sets the planner's cached estimates, as [`Self::put_first`] does, in the conditions that the
    /// previous child of the same parent has inherited: the planner copies them after its hook,
    /// without the estimates. The last child's are never set, which only costs time.
    ///
    /// Only where all conditions that the parent has by [`nodes::filter_call`] were put first.
    pub(crate) fn estimate_for_previous_child(self) {
        let own = self.read().relid as usize;
        let (tables, root) = (self.root.read().simple_rel_array, self.root.read());
        // SAFETY: the arrays have a place for each number up to the own one, and 0 is no table's;
        // the previous child is complete.
        unsafe {
            let parent =
                |varno: usize| Some((*root.append_rel_array.add(varno)).as_ref()?.parent_relid);
            let Some(previous) = (*tables.add(own - 1)).as_ref() else {
                return;
            };
            if root.append_rel_array.is_null()
                || parent(own).is_none()
                || parent(own) != parent(own - 1)
            {
                return;
            }
            for info in lists::iter::<pg_sys::RestrictInfo>(previous.baserestrictinfo) {
                if expressions::is_filter_call((*info).clause) {
                    set_estimates(info);
                }
            }
        }
    }
}

/// Makes the planner check conditions for parallel safety that are added to a query which was safe.
///
/// # Safety
/// The state of the planning under way.
pub(super) unsafe fn mind_parallel_hazards(root: &PlannerInfo) {
    // SAFETY: as required of the caller.
    if let Some(global) = unsafe { root.glob.as_mut() }
        && global.maxParallelHazard.cast_unsigned() == pg_sys::PROPARALLEL_SAFE
    {
        global.maxParallelHazard = pg_sys::PROPARALLEL_RESTRICTED.cast_signed();
    }
}

/// Sets the planner's cached estimates for a condition of [`nodes::filter_call`].
///
/// # Safety
/// A condition of the current planning.
unsafe fn set_estimates(info: *mut pg_sys::RestrictInfo) {
    // SAFETY: as required of the caller.
    unsafe {
        (*info).norm_selec = FILTER_SELECTIVITY;
        (*info).outer_selec = FILTER_SELECTIVITY;
        (*info).eval_cost = pg_sys::QualCost::default();
    }
}

/// A restriction of one relation, at security level 0, pushed down to the scan.
///
/// # Safety
/// `root` is the current planning, and `clause` a boolean expression on one of its relations. The
/// caller has a guard.
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]
unsafe fn restriction(root: *mut PlannerInfo, clause: *mut Expr) -> *mut pg_sys::RestrictInfo {
    let none = null_mut();
    // SAFETY: no relids are required beyond those of the clause itself.
    unsafe {
        #[cfg(not(since16))]
        return raising::make_restrictinfo(root, clause, true, false, false, 0, none, none, none);
        #[cfg(since16)]
        return raising::make_restrictinfo(
            root, clause, true, false, false, false, 0, none, none, none,
        );
    }
}

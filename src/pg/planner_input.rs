//! What differs between server versions in the planner's input.

use super::externs::raising;
use super::{lists, nodes, roles};
use pgrx::pg_sys::{self, PlannerInfo, Query, RangeTblEntry};

/// A restriction of one relation, at security level 0, pushed down to the scan.
///
/// # Safety
/// `root` is the planning under way and `clause` a boolean expression over one of its relations.
pub(crate) unsafe fn restriction(
    root: *mut PlannerInfo,
    clause: *mut pg_sys::Expr,
) -> *mut pg_sys::RestrictInfo {
    // SAFETY: as required of the caller; nothing here is to be dropped when an error passes.
    unsafe { at_boundary!(unguarded_restriction(root, clause)) }
}

/// As [`restriction`], and before all others of the relation. One of a call of
/// [`nodes::filter_call`] has the planner's estimates already in their places, which it
/// would otherwise ask the function's support function for at each planning. They are what
/// that one says.
///
/// # Safety
/// As [`restriction`]; `rel` is that relation.
pub(crate) unsafe fn put_restriction_first(
    root: *mut PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    clause: *mut pg_sys::Expr,
) {
    // SAFETY: as required of the caller; nothing here is to be dropped when an error passes.
    unsafe {
        at_boundary!(let info = unguarded_restriction(root, clause);
            if nodes::is_filter_call(clause) {
                (*info).norm_selec = FILTER_SELECTIVITY;
                (*info).outer_selec = FILTER_SELECTIVITY;
                (*info).eval_cost = pg_sys::QualCost::default();
            }
            (*rel).baserestrictinfo = raising::lcons(info.cast(), (*rel).baserestrictinfo););
    }
}

/// # Safety
/// As [`restriction`], with a guard around it.
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]
unsafe fn unguarded_restriction(
    root: *mut PlannerInfo,
    clause: *mut pg_sys::Expr,
) -> *mut pg_sys::RestrictInfo {
    let none = core::ptr::null_mut();
    // SAFETY: no relids are required beyond those of the clause itself.
    unsafe {
        #[cfg(feature = "pg15")]
        return raising::make_restrictinfo(root, clause, true, false, false, 0, none, none, none);
        #[cfg(not(feature = "pg15"))]
        return raising::make_restrictinfo(
            root, clause, true, false, false, false, 0, none, none, none,
        );
    }
}

/// A filter lets nearly all rows pass, so that a query is planned like the same query
/// without it.
pub(crate) const FILTER_SELECTIVITY: f64 = 1.0;

/// Has the planner look whether restrictions may be evaluated by parallel workers: it has
/// looked at the query already, and asks no more where that holds nothing that may not.
///
/// # Safety
/// `root` is the planning under way.
pub(crate) unsafe fn mind_parallel_hazards(root: *mut PlannerInfo) {
    // SAFETY: as required of the caller.
    unsafe {
        let hazard = &mut (*(*root).glob).maxParallelHazard;
        if hazard.cast_unsigned() == pg_sys::PROPARALLEL_SAFE {
            *hazard = pg_sys::PROPARALLEL_RESTRICTED.cast_signed();
        }
    }
}

/// The role as which access to the table is checked when it is not the current
/// user (a view's owner); `InvalidOid` for the current user.
///
/// # Safety
/// `entry` is a relation's entry in the range table of `query`.
pub(crate) unsafe fn check_as_user(query: *mut Query, entry: *mut RangeTblEntry) -> pg_sys::Oid {
    // SAFETY: as required of the caller.
    unsafe {
        #[cfg(feature = "pg15")]
        {
            let _ = query;
            (*entry).checkAsUser
        }
        #[cfg(not(feature = "pg15"))]
        {
            if (*entry).perminfoindex == 0 {
                return pg_sys::InvalidOid;
            }
            (*pg_sys::getRTEPermissionInfo((*query).rteperminfos, entry)).checkAsUser
        }
    }
}

/// Tells the executor that the statement updates these columns too, although
/// its author did not name them and needs no privilege for them: triggers and
/// generated columns that depend on them must not be missed.
///
/// One set of columns serves both for that and for the check of privileges.
/// Where they must differ, what the author asked for is checked on a second
/// range table entry that is not scanned, as PostgreSQL does for views.
///
/// # Safety
/// `entry` is the result relation's entry in the range table of `query`, which
/// may be scribbled on; `columns` are its user columns.
pub(crate) unsafe fn mark_updated(query: *mut Query, entry: *mut RangeTblEntry, columns: &[i16]) {
    // SAFETY: as required of the caller; bitmapsets are copied before they grow.
    unsafe {
        let relid = (*entry).relid;
        let asked = check_as_user(query, entry);
        let user = if asked == pg_sys::InvalidOid {
            roles::current_user()
        } else {
            asked
        };
        if !columns
            .iter()
            .all(|&c| roles::may_update_column(relid, c, user))
        {
            check_separately(query, entry);
        }
        #[cfg(feature = "pg15")]
        let updated = &mut (*entry).updatedCols;
        #[cfg(not(feature = "pg15"))]
        let updated =
            &mut (*pg_sys::getRTEPermissionInfo((*query).rteperminfos, entry)).updatedCols;
        let offset = -pg_sys::FirstLowInvalidHeapAttributeNumber;
        *updated = columns.iter().fold(pg_sys::bms_copy(*updated), |set, &c| {
            pg_sys::bms_add_member(set, i32::from(c) + offset)
        });
    }
}

/// Moves the check of privileges to a copy of the entry.
///
/// # Safety
/// As [`mark_updated`].
unsafe fn check_separately(query: *mut Query, entry: *mut RangeTblEntry) {
    // SAFETY: copies are made in the current memory context, which is the planner's.
    unsafe {
        let check = pg_sys::copyObjectImpl(entry.cast()).cast::<RangeTblEntry>();
        (*check).inh = false;
        (*check).inFromCl = false;
        (*check).securityQuals = core::ptr::null_mut();
        #[cfg(feature = "pg15")]
        {
            (*entry).requiredPerms = 0;
        }
        #[cfg(not(feature = "pg15"))]
        {
            // No check can be left empty from 16 on: the owner passes it.
            let perminfo = pg_sys::getRTEPermissionInfo((*query).rteperminfos, entry);
            let copy = pg_sys::copyObjectImpl(perminfo.cast());
            (*query).rteperminfos = pg_sys::lappend((*query).rteperminfos, copy.cast());
            (*check).perminfoindex = super::lists::len((*query).rteperminfos) as u32;
            (*perminfo).checkAsUser =
                super::catalog::class((*entry).relid).map_or((*perminfo).checkAsUser, |c| c.owner);
        }
        (*query).rtable = pg_sys::lappend((*query).rtable, check.cast());
    }
}

/// The user columns that depend on column `attno` being updated: the column
/// itself if a trigger or a unique key names it, and generated columns that
/// are computed from it. Empty for nearly every table.
///
/// # Safety
/// The caller's transaction holds a lock on the relation.
pub(crate) unsafe fn dependents_of_update(relid: pg_sys::Oid, attno: i16) -> Vec<i16> {
    let offset = -pg_sys::FirstLowInvalidHeapAttributeNumber;
    let bit = i32::from(attno) + offset;
    let mut dependents = Vec::new();
    // SAFETY: the relation is locked and stays open while it is read.
    unsafe {
        let relation = pg_sys::relation_open(relid, pg_sys::NoLock.cast_signed());
        let key_kind = pg_sys::IndexAttrBitmapKind::INDEX_ATTR_BITMAP_KEY;
        let in_key =
            pg_sys::bms_is_member(bit, pg_sys::RelationGetIndexAttrBitmap(relation, key_kind));
        // Children may have triggers of their own; naming the column costs nothing there.
        let has_children = (*(*relation).rd_rel).relhassubclass;
        if in_key || has_children || trigger_names((*relation).trigdesc, attno) {
            dependents.push(attno);
        }
        let tuple_desc = (*relation).rd_att;
        let constraints = (*tuple_desc).constr;
        if !constraints.is_null() && (*constraints).has_generated_stored {
            for i in 0..(*constraints).num_defval {
                let default = (*constraints).defval.add(usize::from(i));
                let column = (*default).adnum;
                if pg_sys::get_attgenerated(relid, column) == 0 {
                    continue;
                }
                let mut used = core::ptr::null_mut();
                pg_sys::pull_varattnos(pg_sys::stringToNode((*default).adbin).cast(), 1, &mut used);
                if pg_sys::bms_is_member(bit, used) {
                    dependents.extend([attno, column]);
                }
            }
        }
        pg_sys::relation_close(relation, pg_sys::NoLock.cast_signed());
    }
    dependents.sort_unstable();
    dependents.dedup();
    dependents
}

/// Whether an UPDATE trigger is declared `UPDATE OF` that column.
unsafe fn trigger_names(triggers: *mut pg_sys::TriggerDesc, attno: i16) -> bool {
    // SAFETY: a null or valid trigger descriptor of an open relation.
    unsafe {
        let Some(triggers) = triggers.as_ref() else {
            return false;
        };
        (0..usize::try_from(triggers.numtriggers).unwrap_or(0)).any(|i| {
            let trigger = triggers.triggers.add(i);
            (0..usize::try_from((*trigger).tgnattr).unwrap_or(0))
                .any(|c| *(*trigger).tgattr.add(c) == attno)
        })
    }
}

/// The table that a query writes to, or else the first two in its FROM; of a query in FROM,
/// those in it.
///
/// # Safety
/// `query` is the planner's input.
pub(crate) unsafe fn first_tables(
    query: *mut pg_sys::Query,
) -> Option<(pg_sys::Oid, Option<pg_sys::Oid>)> {
    // SAFETY: as required of the caller. The entries of FROM come first, in their order.
    unsafe {
        let target = usize::try_from((*query).resultRelation).unwrap_or(0);
        let first = target.saturating_sub(1);
        let mut entries = (*query).rtable;
        let entry = lists::iter::<pg_sys::RangeTblEntry>(entries).nth(first)?;
        if (*entry).rtekind == pg_sys::RTEKind::RTE_SUBQUERY && !(*entry).subquery.is_null() {
            entries = (*(*entry).subquery).rtable;
        }
        let table = |at| {
            let entry = lists::iter::<pg_sys::RangeTblEntry>(entries).nth(at)?;
            ((*entry).rtekind == pg_sys::RTEKind::RTE_RELATION).then_some((*entry).relid)
        };
        Some((table(first)?, table(first + 1)))
    }
}

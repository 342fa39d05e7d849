//! Adds the restriction to the scan of a relation
//! (`docs/decisions/0001-relation-info-hook.md`).

use super::{deletion_indexes, restriction, row_locks, statement};
use crate::pg::{lists, nodes, planner_input, roles};
use crate::settings;
use crate::store::extension::{self, Functions};
use crate::store::{TablePolicy, cache};
use pgrx::pg_sys::{self, PlannerInfo, RelOptInfo};

/// Adds the restriction, unless the relation has no policy, or the query must see every row.
///
/// # Safety
/// The arguments of `get_relation_info_hook`.
pub(crate) unsafe fn hide_expired(
    root: *mut PlannerInfo,
    relid: pg_sys::Oid,
    rel: *mut RelOptInfo,
) {
    let Some(policy) = cache::policy(relid).filter(|policy| policy.hides()) else {
        return;
    };
    let Some(functions) = extension::functions().filter(|_| !settings::show_expired()) else {
        return;
    };
    // SAFETY: the planner's own structures, valid during the call.
    unsafe {
        if sees_every_row(root, relid, rel) {
            if is_deleted_from(root, relid, rel) {
                let unneeded = restriction::live_or_unneeded(&functions, &policy, (*rel).relid);
                append(root, rel, unneeded);
            }
            return;
        }
        if policy.rules.iter().any(|rule| rule.predicate.is_some()) {
            planner_input::mind_parallel_hazards(root);
        }
        match (*rel).reloptkind {
            pg_sys::RelOptKind::RELOPT_BASEREL => restrict(root, &functions, &policy, rel),
            pg_sys::RelOptKind::RELOPT_OTHER_MEMBER_REL => {
                restrict_child(root, &functions, &policy, rel)
            }
            _ => {}
        }
    }
}

/// Whether the query keeps tables consistent on disk, or is the extension's own.
///
/// # Safety
/// `rel` is a relation of `root`, the planning under way.
unsafe fn sees_every_row(root: *mut PlannerInfo, relid: pg_sys::Oid, rel: *mut RelOptInfo) -> bool {
    let statement = statement::current();
    let sees_whole = |relid| {
        statement.referential.sees_every_row_of(relid) || statement.own_query_on == Some(relid)
    };
    // SAFETY: as required of the caller; a child's parent is in append_rel_array, and entries
    // exist for all relids in use.
    unsafe {
        let mut rti = (*rel).relid;
        let mut current = relid;
        while !sees_whole(current) {
            let array = (*root).append_rel_array;
            let Some(info) = (!array.is_null())
                .then(|| (*array.add(rti as usize)).as_ref())
                .flatten()
            else {
                return false;
            };
            rti = info.parent_relid;
            current = (**(*root).simple_rte_array.add(rti as usize)).relid;
        }
    }
    true
}

/// Whether the query deletes expired rows of the relation in a session's own transaction, where
/// rows may refer to them that nobody else knows.
///
/// # Safety
/// As [`sees_every_row`].
unsafe fn is_deleted_from(
    root: *mut PlannerInfo,
    relid: pg_sys::Oid,
    rel: *mut RelOptInfo,
) -> bool {
    let statement = statement::current();
    // SAFETY: as required of the caller.
    unsafe {
        let query = (*root).parse;
        (*rel).reloptkind == pg_sys::RelOptKind::RELOPT_BASEREL
            && (*query).commandType == pg_sys::CmdType::CMD_DELETE
            && u32::try_from((*query).resultRelation).is_ok_and(|target| target == (*rel).relid)
            && (statement.referential.sees_every_row_of(relid)
                || statement.is_of_session && statement.own_query_on == Some(relid))
    }
}

/// Adds a condition that is evaluated after all others, because its function costs much.
///
/// # Safety
/// As [`sees_every_row`].
unsafe fn append(root: *mut PlannerInfo, rel: *mut RelOptInfo, condition: *mut pg_sys::Expr) {
    // SAFETY: as required of the caller; allocates in the planner's memory context.
    unsafe {
        let info = planner_input::restriction(root, condition);
        (*rel).baserestrictinfo = pg_sys::lappend((*rel).baserestrictinfo, info.cast());
    }
}

/// For a relation of the query itself: hides expired rows, or removes those that a foreign key's
/// statement meets on its referencing side. The hiding conditions are the first in the list, and
/// free: no function of a user sees an expired row before them.
///
/// # Safety
/// As [`sees_every_row`].
unsafe fn restrict(
    root: *mut PlannerInfo,
    functions: &Functions,
    policy: &TablePolicy,
    rel: *mut RelOptInfo,
) {
    // SAFETY: as required of the caller; allocates in the planner's memory context.
    unsafe {
        let entry = *(*root).simple_rte_array.add((*rel).relid as usize);
        if statement::current()
            .referential
            .removes_from((*entry).relid)
        {
            let live = restriction::live_or_removed(functions, policy, (*rel).relid);
            append(root, rel, live);
            return;
        }
        let varno = (*rel).relid;
        let put_first = |condition| {
            let clause = unless_physical(root, functions, entry, varno, condition);
            planner_input::put_restriction_first(root, rel, clause);
        };
        if row_locks::are_taken_under(policy.labelled_table) {
            put_first(restriction::live_or_locked(functions, policy, varno));
        } else {
            if let Some(pruning) = restriction::pruning_condition(functions, policy, rel) {
                put_first(pruning);
            }
            restriction::each_live_condition(functions, policy, varno, put_first);
        }
        (*rel).baserestrict_min_security = 0;
        if let Some(column) = policy.clock.and_then(|clock| clock.ttl) {
            deletion_indexes::leave_out(root, rel, column.attno);
        }
    }
}

/// For a child of an append relation. Children inherit the restriction of a parent with a label.
/// A child whose parent has no policy (a member of a flattened UNION ALL, a partition or child
/// with a label of its own) gets the restriction as a security qual, because its list of
/// restrictions is overwritten next. All other quals are at level 0 by then.
///
/// # Safety
/// As [`sees_every_row`].
unsafe fn restrict_child(
    root: *mut PlannerInfo,
    functions: &Functions,
    policy: &TablePolicy,
    rel: *mut RelOptInfo,
) {
    // SAFETY: as required of the caller; allocates in the planner's memory context.
    unsafe {
        let varno = (*rel).relid;
        let entry = *(*root).simple_rte_array.add(varno as usize);
        let info = *(*root).append_rel_array.add(varno as usize);
        let parent = *(*root).simple_rte_array.add((*info).parent_relid as usize);
        if (*parent).rtekind == pg_sys::RTEKind::RTE_RELATION
            && cache::policy((*parent).relid)
                .is_some_and(|p| p.labelled_table == policy.labelled_table)
        {
            return;
        }
        let live = if row_locks::are_taken_under(policy.labelled_table) {
            vec![restriction::live_or_locked(functions, policy, varno)]
        } else {
            restriction::live_conditions(functions, policy, varno)
        };
        let clauses: Vec<_> = live
            .into_iter()
            .map(|condition| unless_physical(root, functions, entry, varno, condition))
            .collect();
        let set = lists::of(&clauses);
        if lists::iter::<pg_sys::List>((*entry).securityQuals)
            .any(|present| nodes::same(present, set))
        {
            return;
        }
        (*entry).securityQuals = pg_sys::lappend((*entry).securityQuals, set.cast());
        let levels = u32::try_from(lists::len((*entry).securityQuals)).unwrap_or(u32::MAX);
        (*root).qual_security_level = (*root).qual_security_level.max(levels);
    }
}

/// Physical readers: with `row_security = off`, which pg_dump always sets, the table's owner and
/// superusers read every row on disk; not through views, in a REFRESH, nor in the target of an
/// UPDATE, DELETE or MERGE.
///
/// All of it is checked again at execution: a cached plan can outlive the setting, and run when
/// others call the function that it is in. Another role gets a plan of its own.
///
/// # Safety
/// As [`sees_every_row`].
unsafe fn unless_physical(
    root: *mut PlannerInfo,
    functions: &Functions,
    entry: *mut pg_sys::RangeTblEntry,
    varno: u32,
    clause: *mut pg_sys::Expr,
) -> *mut pg_sys::Expr {
    // SAFETY: as required of the caller; the rest reads backend-local variables.
    unsafe {
        let query = (*root).parse;
        if !roles::is_row_security_off() {
            return clause;
        }
        statement::depends_on_role();
        let physical = roles::may_read_physically((*entry).relid)
            && u32::try_from((*query).resultRelation).is_ok_and(|target| target != varno)
            && planner_input::check_as_user(query, entry) == pg_sys::InvalidOid
            && !pg_sys::InSecurityRestrictedOperation();
        if !physical {
            return clause;
        }
        let table = nodes::table((*entry).relid);
        let exempt = nodes::call(functions.reads_physically, pg_sys::BOOLOID, &[table]);
        nodes::or(exempt, clause)
    }
}

//! Adds the restriction to the scan of a relation
//! (`docs/decisions/0001-relation-info-hook.md`).

use super::{deletion_indexes, restriction, row_locks, statement};
use crate::pg::{lists, nodes, planner_input, roles};
use crate::settings;
use crate::store::extension::{self, Functions};
use crate::store::{TablePolicy, cache};
use pgrx::pg_sys::{self, PlannerInfo, RelOptInfo};

/// Adds it, unless the relation has no policy, or the query is to see every row.
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

/// Queries that keep the tables consistent on disk, and the extension's own.
unsafe fn sees_every_row(root: *mut PlannerInfo, relid: pg_sys::Oid, rel: *mut RelOptInfo) -> bool {
    let statement = statement::current();
    let sees_whole = |relid| {
        statement.referential.sees_every_row_of(relid) || statement.own_query_on == Some(relid)
    };
    // SAFETY: a child's parent stands in append_rel_array; entries exist for all relids in use.
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

/// Whether expired rows of the relation are deleted in a session's own transaction, where rows
/// may refer to them that nobody else knows.
unsafe fn is_deleted_from(
    root: *mut PlannerInfo,
    relid: pg_sys::Oid,
    rel: *mut RelOptInfo,
) -> bool {
    let statement = statement::current();
    // SAFETY: the planner's own structures.
    unsafe {
        let query = (*root).parse;
        (*rel).reloptkind == pg_sys::RelOptKind::RELOPT_BASEREL
            && (*query).commandType == pg_sys::CmdType::CMD_DELETE
            && u32::try_from((*query).resultRelation).is_ok_and(|target| target == (*rel).relid)
            && (statement.referential.sees_every_row_of(relid)
                || statement.is_of_session && statement.own_query_on == Some(relid))
    }
}

/// Adds a condition that is evaluated after all others: its function has a high cost.
unsafe fn append(root: *mut PlannerInfo, rel: *mut RelOptInfo, condition: *mut pg_sys::Expr) {
    // SAFETY: planner's structures; nodes are allocated in the planner's context.
    unsafe {
        let info = planner_input::restriction(root, condition);
        (*rel).baserestrictinfo = pg_sys::lappend((*rel).baserestrictinfo, info.cast());
    }
}

/// A relation of the query itself. On the referencing side of a foreign key, expired
/// rows are removed that the statement meets. Otherwise they are hidden: the conditions
/// are the first in the list, and free ones: no function of a user sees an expired row
/// before them.
unsafe fn restrict(
    root: *mut PlannerInfo,
    functions: &Functions,
    policy: &TablePolicy,
    rel: *mut RelOptInfo,
) {
    // SAFETY: planner's structures; nodes are allocated in the planner's context.
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
        if row_locks::are_taken_under(policy.holder) {
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

/// A child of an append relation. What a labelled parent table has, its
/// children inherit. A child whose parent has no policy (a member of a
/// flattened UNION ALL, a partition or heir with a label of its own) gets the
/// restriction as a security qual, because its list of restrictions is
/// overwritten next. All other quals are at level 0 already.
unsafe fn restrict_child(
    root: *mut PlannerInfo,
    functions: &Functions,
    policy: &TablePolicy,
    rel: *mut RelOptInfo,
) {
    // SAFETY: planner's structures; nodes are allocated in the planner's context.
    unsafe {
        let varno = (*rel).relid;
        let entry = *(*root).simple_rte_array.add(varno as usize);
        let info = *(*root).append_rel_array.add(varno as usize);
        let parent = *(*root).simple_rte_array.add((*info).parent_relid as usize);
        if (*parent).rtekind == pg_sys::RTEKind::RTE_RELATION
            && cache::policy((*parent).relid).is_some_and(|p| p.holder == policy.holder)
        {
            return;
        }
        let live = if row_locks::are_taken_under(policy.holder) {
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

/// Physical readers: with `row_security = off`, which pg_dump always sets, the
/// table's owner and superusers read every row on disk. Not through views, not
/// in a REFRESH, and not the target of an UPDATE, DELETE or MERGE.
///
/// All of it is asked again at execution, because a plan can outlive the setting, and run
/// when others have called the function that it is in. Made anew for another role, it goes
/// without the question.
unsafe fn unless_physical(
    root: *mut PlannerInfo,
    functions: &Functions,
    entry: *mut pg_sys::RangeTblEntry,
    varno: u32,
    clause: *mut pg_sys::Expr,
) -> *mut pg_sys::Expr {
    // SAFETY: planner's structures; the rest reads backend-local variables.
    unsafe {
        let query = (*root).parse;
        let physical = roles::reads_physically((*entry).relid)
            && u32::try_from((*query).resultRelation).is_ok_and(|target| target != varno)
            && planner_input::check_as_user(query, entry) == pg_sys::InvalidOid
            && !pg_sys::InSecurityRestrictedOperation();
        if !physical {
            return clause;
        }
        statement::depends_on_role();
        let table = nodes::table((*entry).relid);
        let exempt = nodes::call(functions.reads_physically, pg_sys::BOOLOID, &[table]);
        nodes::or(exempt, clause)
    }
}

//! Adds the restriction to the scan of a relation
//! (`docs/decisions/0001-relation-info-hook.md`).

use super::{planned_statement, restriction, row_locks};
use crate::citus::{self, Doing};
use crate::pg::abi::externs;
use crate::pg::catalog::{expressions, roles};
use crate::pg::plan::planned_table::PlannedTable;
use crate::pg::plan::planner_input::RangeTableEntry;
use crate::pg::session::owner_session;
use crate::settings;
use crate::store::extension::{self, Functions};
use crate::store::{Rule, TablePolicy, cache};
use core::iter::once;
use pgrx::pg_sys::{self, CmdType, Expr, RelOptKind};

/// Adds the restriction, unless the relation has no policy, or the query must see every row.
pub(crate) fn hide_expired(table: PlannedTable<'_>, relid: pg_sys::Oid) {
    if follows_parent(table, relid) {
        return;
    }
    let Some(policy) = cache::policy(relid).filter(|policy| policy.hides()) else {
        return;
    };
    let sees_all = settings::show_expired() || citus::is_doing(Doing::Copying);
    let Some(functions) = extension::functions().filter(|_| !sees_all) else {
        return;
    };
    if sees_every_row(table, relid) {
        if is_deleted_from(table, relid) {
            let varno = table.read().relid;
            if planned_statement::current().removes_referring()
                && row_locks::are_taken_under(policy.labelled_table)
            {
                let not_locked = restriction::not_locked(&functions, varno);
                // SAFETY: the conditions were made above for this table's varno, and are not shared.
                unsafe { table.append(not_locked) };
            }
            let unneeded = restriction::live_or_unneeded(&functions, &policy, varno);
            // SAFETY: the conditions were made above for this table's varno, and are not shared.
            unsafe { table.append(unneeded) };
        }
        return;
    }
    if policy.rules.iter().any(Rule::runs_others_functions) {
        table.mind_parallel_hazards();
    }
    match table.read().reloptkind {
        RelOptKind::RELOPT_BASEREL => restrict(table, &functions, &policy),
        RelOptKind::RELOPT_OTHER_MEMBER_REL => restrict_child(table, &functions, &policy),
        _ => {}
    }
}

/// Whether the query keeps tables consistent on disk, is the extension's own, or copies the table to
/// a subscriber (C36); a view's tables are its owner's, and are read like others.
fn sees_every_row(table: PlannedTable<'_>, relid: pg_sys::Oid) -> bool {
    let statement = planned_statement::current();
    if statement.is_copied && table.queried().check_as_user() == pg_sys::InvalidOid {
        return true;
    }
    let sees_whole =
        |relid| statement.referential.sees_every_row_of(relid) || statement.is_own_query_on(relid);
    let parents = table.parents().map(|entry| entry.read().relid);
    once(relid).chain(parents).any(sees_whole)
}

/// Whether the query deletes expired rows of the relation in a session's own transaction, where
/// rows that only this transaction sees may refer to them.
fn is_deleted_from(table: PlannedTable<'_>, relid: pg_sys::Oid) -> bool {
    let statement = planned_statement::current();
    // A worker's transaction has written nothing else.
    let is_of_session = || owner_session::way().is_none() || statement.removes_referring();
    table.read().reloptkind == RelOptKind::RELOPT_BASEREL
        && table.query().read().commandType == CmdType::CMD_DELETE
        && table.is_target()
        && (statement.referential.sees_every_row_of(relid)
            || statement.is_own_query_on(relid) && is_of_session())
}

/// For a relation of the query itself: hides expired rows. The conditions are the first in the
/// list, and free: no function of a user sees an expired row before them.
fn restrict(table: PlannedTable<'_>, functions: &Functions, policy: &TablePolicy) {
    let varno = table.read().relid;
    let put_first = |condition| {
        let clause = unless_physical(table, functions, condition);
        // SAFETY: the conditions were made above for this table's varno, and are not shared.
        unsafe { table.put_first(clause) };
    };
    if row_locks::are_taken_under(policy.labelled_table) {
        put_first(restriction::live_or_locked(functions, policy, varno));
    } else {
        if let Some(pruning) = restriction::pruning_condition(functions, policy, table) {
            put_first(pruning);
        }
        restriction::each_live_condition(functions, policy, varno, put_first);
    }
}

/// Whether the relation is a partition that the query reads through a table with a policy: it has
/// the same (`docs/decisions/0008-topmost-policy-wins.md`), and inherits the restriction. So
/// nothing is looked up for each of what may be thousands of partitions.
fn follows_parent(table: PlannedTable<'_>, relid: pg_sys::Oid) -> bool {
    let Some(queried) = table.partitioned_parents().last() else {
        return false;
    };
    let parent = table
        .partitioned_parents()
        .next()
        .and_then(RangeTableEntry::table);
    let Some(policy) = parent.and_then(cache::policy) else {
        return false;
    };
    let Some(of_queried) = queried.table().and_then(cache::policy) else {
        return true;
    };
    if policy.hides()
        && of_queried.labelled_table == policy.labelled_table
        && !settings::show_expired()
        && !sees_every_row(table, relid)
    {
        table.estimate_for_previous_child();
    }
    true
}

/// For a child of an append relation. Children inherit the restriction of a parent with a label.
/// A child whose parent has no policy (a member of a flattened UNION ALL, a partition or child
/// with a label of its own) gets the restriction as a security qual, because its list of
/// restrictions is overwritten next. All other quals are at level 0 by then.
fn restrict_child(table: PlannedTable<'_>, functions: &Functions, policy: &TablePolicy) {
    let parent = table.parents().next().and_then(RangeTableEntry::table);
    if parent
        .and_then(cache::policy)
        .is_some_and(|parent| parent.labelled_table == policy.labelled_table)
    {
        return;
    }
    let varno = table.read().relid;
    let live = if row_locks::are_taken_under(policy.labelled_table) {
        vec![restriction::live_or_locked(functions, policy, varno)]
    } else {
        restriction::live_conditions(functions, policy, varno)
    };
    let conditions = live.into_iter();
    let conditions = conditions.map(|condition| unless_physical(table, functions, condition));
    // SAFETY: the conditions were made above for this table's varno, and are not shared.
    unsafe { table.add_security_conditions(&conditions.collect::<Vec<_>>()) };
}

/// Physical readers: with `row_security = off`, which pg_dump always sets, the table's owner and
/// superusers read every row on disk; not through views, in a REFRESH, nor in the target of an
/// UPDATE, DELETE or MERGE.
///
/// All of it is checked again at execution: a cached plan can outlive the setting, and run when
/// others call the function that it is in. Another role gets a plan of its own.
fn unless_physical(table: PlannedTable<'_>, functions: &Functions, clause: *mut Expr) -> *mut Expr {
    if !roles::is_row_security_off() {
        return clause;
    }
    planned_statement::depends_on_role();
    let relid = table.entry().read().relid;
    // A child's entry is no target, and from 16 on has no user to check.
    let queried = table.queried();
    let physical = roles::may_read_physically(relid)
        && !queried.is_target()
        && queried.check_as_user() == pg_sys::InvalidOid
        && !externs::InSecurityRestrictedOperation();
    if !physical {
        return clause;
    }
    let table = [expressions::table(relid)];
    let exempt = expressions::call(functions.reads_physically, pg_sys::BOOLOID, &table);
    expressions::or(exempt, clause)
}

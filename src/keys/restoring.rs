//! Rows that a restore brings with their `_ts`: deletion waits for `ttl.resume`
//! (docs/decisions/0029-what-waits-after-a-restore.md).
//!
//! pg_dump's scripts run with `row_security = off`, as the tables' owner or a superuser, and
//! list `_ts` among the columns of COPY and INSERT. Nobody else writes like that.

use crate::error::Error;
use crate::pg::{lists, nodes, roles};
use crate::policy::Policy;
use crate::store::{TablePolicy, cache, extension, label_of, policy_lock, seclabel};
use pgrx::pg_sys::{self, CopyStmt};

/// Before a COPY FROM into the table, which has this policy.
///
/// # Safety
/// `stmt` is a COPY FROM of the parser.
pub(crate) unsafe fn before_copy(stmt: *mut CopyStmt, relid: pg_sys::Oid, policy: &TablePolicy) {
    // SAFETY: as required of the caller: a list of names, or null for all columns.
    let brings_times = unsafe {
        let mut dated = policy.clock.iter().map(|clock| clock.ts.attno);
        let mut dates = policy.rules.iter().map(|rule| rule.column.attno);
        let gives = |attno| (*stmt).attlist.is_null() || is_named((*stmt).attlist, relid, attno);
        dated.any(gives) || dates.any(gives)
    };
    if brings_times {
        wait_for_resume(relid, policy);
    }
}

/// # Safety
/// A list of the parser, of names of columns.
unsafe fn is_named(columns: *mut pg_sys::List, relid: pg_sys::Oid, attno: i16) -> bool {
    // SAFETY: as required of the caller; a name that is no column of the table has number 0.
    unsafe {
        lists::iter::<pg_sys::String>(columns)
            .any(|name| pg_sys::get_attnum(relid, (*name).sval) == attno)
    }
}

/// Before an INSERT is executed.
///
/// # Safety
/// A plan of the planner.
pub(crate) unsafe fn before_insert(plan: *mut pg_sys::PlannedStmt) {
    // SAFETY: as required of the caller.
    unsafe {
        for index in lists::ints((*plan).resultRelations) {
            let entry = lists::nth::<pg_sys::RangeTblEntry>((*plan).rtable, index - 1);
            let Some(relid) = entry.and_then(|entry| entry.as_ref()).map(|e| e.relid) else {
                continue;
            };
            let policy = cache::policy(relid);
            if let Some(policy) = policy
                && let Some(clock) = policy.clock
                && keeps_given_time((*plan).planTree, clock.ts.attno)
            {
                wait_for_resume(relid, &policy);
            }
        }
    }
}

/// Whether the plan keeps the time that is given (`stamp.rs`).
///
/// # Safety
/// A plan of the planner.
unsafe fn keeps_given_time(plan: *mut pg_sys::Plan, ts: i16) -> bool {
    // SAFETY: as required of the caller; a node's tag tells its type.
    unsafe {
        let (Some(functions), Some(top)) = (extension::functions(), plan.as_ref()) else {
            return false;
        };
        let Some(rows) = top.lefttree.as_ref() else {
            return false;
        };
        let mut entries = lists::iter::<pg_sys::TargetEntry>(rows.targetlist);
        let stamp = entries.find(|&entry| (*entry).resno == ts);
        stamp.is_some_and(|entry| {
            nodes::case_asks((*entry).expr) == Some(functions.reads_physically)
        })
    }
}

/// From now on nothing is deleted from the table that carries the label, until `ttl.resume`. Who
/// restores a partition of another's table cannot cause that.
fn wait_for_resume(relid: pg_sys::Oid, policy: &TablePolicy) {
    let labelled_table = policy.labelled_table;
    let concerns = !policy.is_restored && policy.is_on;
    if !concerns || !roles::reads_physically(relid) || !roles::reads_physically(labelled_table) {
        return;
    }
    policy_lock::lock_policy_for_change(labelled_table);
    // Another session of the same restore may have been first.
    let Some(policy) =
        label_of(labelled_table).filter(|policy| !policy.is_restored(labelled_table.to_u32()))
    else {
        return;
    };
    let guarded = Policy {
        table_oid: None,
        ..policy
    };
    seclabel::set(labelled_table, Some(&guarded.to_label()));
    Error::rows_restored(labelled_table).notice();
}

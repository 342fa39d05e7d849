//! Rows that a restore brings with their `_ts`: deletion waits for `ttl.resume`
//! (docs/decisions/0070-what-waits.md).
//!
//! pg_dump's scripts run with `row_security = off`, as the tables' owner or a superuser, and
//! list `_ts` among the columns of COPY and INSERT. No other program writes like that.

use crate::error::Error;
use crate::pg::abi::lists;
use crate::pg::catalog::roles;
use crate::pg::exec::executor::StatementPlan;
use crate::pg::session;
use crate::policy::Policy;
use crate::store::{Rule, TablePolicy, cache, extension, label_of, policy_lock, seclabel};
use pgrx::pg_sys::{self, CopyStmt};
use std::ffi::CStr;

/// Before a COPY FROM into the table, which has this policy.
///
/// # Safety
/// `stmt` is a COPY FROM of the parser.
pub(crate) unsafe fn before_copy(stmt: *mut CopyStmt, relid: pg_sys::Oid, policy: &TablePolicy) {
    // SAFETY: as required of the caller: a list of names, or null for all columns.
    let brings_times = unsafe {
        let named = (*stmt).attlist;
        let is_it = |name: &CStr, attno| pg_sys::get_attnum(relid, name.as_ptr()) == attno;
        let gives = |attno| named.is_null() || lists::names(named).any(|name| is_it(name, attno));
        let mut dated = policy.clock.iter().map(|clock| clock.ts.attno);
        let mut dates = policy.rules.iter().flat_map(Rule::columns);
        dated.any(gives) || dates.any(gives)
    };
    if brings_times {
        wait_for_resume(relid, policy);
    }
}

/// Before an INSERT is executed.
pub(crate) fn before_insert(plan: StatementPlan<'_>) {
    let Some(functions) = extension::functions() else {
        return;
    };
    for relid in plan.written() {
        // It keeps the time that is given (`stamp/mod.rs`).
        let Some(policy) = cache::policy(relid) else {
            continue;
        };
        let keeps_time = |attno| plan.asked_for(attno) == Some(functions.reads_physically);
        let brings_times = match policy.clock {
            Some(clock) => keeps_time(clock.ts.attno),
            // Nothing in the plan says whether the dates are given. pg_dump's scripts give all columns, and set an empty
            // search_path, which users' sessions do not have.
            None => !policy.rules.is_empty() && session::has_empty_search_path(),
        };
        if brings_times {
            wait_for_resume(relid, &policy);
        }
    }
}

/// From now on nothing is deleted from the table that carries the label, until `ttl.resume`. Who
/// restores a partition of another's table cannot cause that.
fn wait_for_resume(relid: pg_sys::Oid, policy: &TablePolicy) {
    let labelled_table = policy.labelled_table;
    let concerns = !policy.label.restored && policy.label.is_on();
    if !concerns || !roles::reads_physically(relid) || !roles::reads_physically(labelled_table) {
        return;
    }
    if hold(labelled_table, false) {
        Error::rows_restored(labelled_table).warn();
    }
}

/// Makes deletion from the table that carries the label wait for `ttl.resume`, in this transaction; false
/// if it waits already. `handed_over`: as a table came from another owner.
pub(crate) fn hold(labelled_table: pg_sys::Oid, handed_over: bool) -> bool {
    policy_lock::lock_policy_for_change(labelled_table);
    // Another session of the same restore may have been first.
    let changes = |policy: &Policy| !policy.restored || handed_over && !policy.handed_over;
    let Some(mut policy) = label_of(labelled_table).filter(changes) else {
        return false;
    };
    policy.restored = true;
    policy.handed_over |= handed_over;
    seclabel::set(labelled_table, Some(&policy));
    true
}

//! The executor's hooks. Start: records the query's time, which it keeps for all its runs, and
//! leaves out a trigger and a constraint that the statement does not need. End: records which tables with TTL the
//! statement has written to.

use crate::citus;
use crate::clock::{distributed, execution};
use crate::deletion::referring;
use crate::keys::{no_action_checks, restoring, skip_trigger};
use crate::pg::abi::report::or_raise;
use crate::pg::catalog::roles;
use crate::pg::exec::executor::{self, Around, ExecutorQuery, StatementPlan};
#[cfg(since19)]
use crate::pg::exec::fast_path;
use crate::pg::exec::firing::FIRING;
use crate::pg::session::gate;
use crate::stamp::skip_override_check;
use crate::store::{cache, extension, written};
use crate::visibility::row_locks;
use pgrx::pg_sys::{self, CmdType};
use pgrx::prelude::*;
use std::ffi::c_int;

/// Installs the hooks; once, at load.
pub(super) fn init() {
    executor::init::<ExecutorHooks>();
}

struct ExecutorHooks;

// SAFETY: nothing needs dropping. After an error the callbacks in `transaction_end.rs` clean up.
unsafe impl Around for ExecutorHooks {
    fn start(query: ExecutorQuery<'_>, eflags: c_int, start: impl FnOnce()) {
        let runs = eflags.cast_unsigned() & pg_sys::EXEC_FLAG_EXPLAIN_ONLY == 0;
        let is_left_out = runs && referring::before(query);
        let outer = execution::begin(query);
        let of_citus = query
            .plan()
            .filter(|plan| !citus::is_known_to_be_absent() && plan.writes());
        if let Some(plan) = of_citus {
            at_start_on_citus(plan);
        }
        start();
        execution::keep(query);
        if is_left_out {
            referring::leave_out(query);
        }
        if let Some(plan) = query.plan()
            && runs
        {
            let writes = writes_to_ttl(plan);
            if writes || !plan.rowMarks.is_null() {
                at_start(query, plan, writes);
            }
        }
        execution::leave(outer);
    }

    fn run(query: ExecutorQuery<'_>, run: impl FnOnce()) {
        if referring::is_left_out(query) {
            return;
        }
        let outer = execution::go_on(query);
        let acting = gate::enter_query();
        run();
        gate::leave_query(acting);
        execution::leave(outer);
    }

    /// A query that writes nothing fires no trigger.
    fn finish(query: ExecutorQuery<'_>, finish: impl FnOnce()) {
        if query.plan().is_some_and(|plan| !plan.writes()) {
            return finish();
        }
        let outer = execution::go_on(query);
        let firing = FIRING.enter(());
        let acting = gate::enter_query();
        no_action_checks::finish(finish);
        gate::leave_query(acting);
        FIRING.leave(firing);
        execution::leave(outer);
    }

    /// A read-only query costs two comparisons here.
    fn end(query: ExecutorQuery<'_>, end: impl FnOnce()) {
        if let Some(plan) = query.plan()
            && writes_to_ttl(plan)
        {
            note_writes(plan);
        }
        end();
        #[cfg(since19)]
        fast_path::after_query();
    }
}

/// Whether the statement writes to a table that may have a TTL. Calls no function of PostgreSQL, as
/// most statements need no more.
fn writes_to_ttl(plan: StatementPlan<'_>) -> bool {
    plan.written()
        .any(|relid| !cache::is_known_to_have_none(relid))
}

#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
extern "C-unwind" fn at_start(
    query: ExecutorQuery<'_>,
    plan: StatementPlan<'_>,
    writes_to_ttl: bool,
) {
    if let Some(functions) = extension::functions().filter(|_| writes_to_ttl) {
        if skip_trigger::may_update(plan) {
            // SAFETY: the statement has just been started.
            unsafe { skip_trigger::skip(query.state(), &functions) };
        }
        if plan.only_inserts_or_updates() {
            // SAFETY: as above.
            unsafe { skip_override_check::leave_out(query.state(), plan, &functions) };
        }
    }
    #[cfg(since19)]
    let on_conflict = writes_to_ttl && plan.locks_on_conflict();
    #[cfg(not(since19))]
    let on_conflict = false;
    if on_conflict || !plan.rowMarks.is_null() {
        row_locks::note(plan);
    }
    if roles::is_row_security_off() && plan.commandType == CmdType::CMD_INSERT {
        restoring::before_insert(plan);
    }
}

#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
extern "C-unwind" fn at_start_on_citus(plan: StatementPlan<'_>) {
    or_raise(distributed::begin(plan));
}

#[pg_guard]
extern "C-unwind" fn note_writes(plan: StatementPlan<'_>) {
    or_raise(distributed::check_age(plan));
    if plan.commandType == CmdType::CMD_DELETE && !plan.hasModifyingCTE {
        return;
    }
    for relid in plan.written() {
        if let Some(policy) = cache::policy(relid).filter(|policy| policy.expires()) {
            written::note(&policy);
        }
    }
}

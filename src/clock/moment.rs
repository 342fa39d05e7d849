//! The time by which one call of the filter judges a row (C14).
//!
//! It is the query's own, except where PostgreSQL checks a row again that another session has
//! changed while the query waited for its lock: then it is the time after the wait
//! (`docs/decisions/0027-time-after-a-wait.md`).

use super::execution;
use super::now::now;
use crate::pg::abi::context::Context;
use crate::pg::abi::externs;
use crate::pg::exec::call::Call;
use crate::pg::session::xact;
use std::cell::Cell;

/// The time by which this call judges.
///
/// # Safety
/// The function keeps nothing else with its calls.
#[inline(always)]
pub(crate) unsafe fn of_call<A>(call: &Call<'_, A>) -> i64 {
    // SAFETY: as required of the caller.
    if unsafe { is_check_again(call) } {
        after_wait()
    } else {
        now()
    }
}

/// Whether the call is part of a check of a row that another session has changed meanwhile.
///
/// # Safety
/// As [`of_call`].
#[inline(always)]
pub(crate) unsafe fn is_check_again<A>(call: &Call<'_, A>) -> bool {
    // SAFETY: as required of the caller.
    unsafe { call.kept(|memory| checks_again(call, memory)) }.is_some_and(Cell::get)
}

/// The time after a wait: never before the query's own, and that if it was given.
#[cold]
pub(crate) fn after_wait() -> i64 {
    if execution::is_given() {
        return now();
    }
    now().max(externs::GetCurrentTimestamp())
}

/// Whether each statement of the transaction has its own time, so that a wait counts.
pub(crate) fn clock_advances_during_waits() -> bool {
    !xact::has_one_snapshot()
}

/// Whether a call is part of such a check. EvalPlanQual, which checks rows again, has an executor
/// state of its own that no hook sees. So its memory, which is the call's, lacks the time that
/// [`execution::keep`] leaves in every other.
#[cold]
fn checks_again<A>(call: &Call<'_, A>, memory: Context<'_>) -> bool {
    execution::time().is_some()
        && clock_advances_during_waits()
        && call.is_by_filter()
        && memory.has_name(c"ExecutorState")
        && !execution::is_kept_in(memory)
}

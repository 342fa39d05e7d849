//! A query keeps the time at which it began (`docs/decisions/0025-a-cursor-keeps-its-time.md`).
//!
//! Several statements of the client may fetch from one cursor or portal. They all see the data
//! as of its opening, so rows are judged by the time of its opening, too.

use super::statement_time::statement_now;
use crate::pg::abi::context::{Context, Mark};
use crate::pg::exec::executor::ExecutorQuery;
use crate::pg::server::parallel;
use crate::pg::session::scoped::{Scope, Scoped};
use core::sync::atomic::{AtomicI64, Ordering::Relaxed};
use pgrx::pg_sys;

/// The time of the running query; 0 if none is running.
static TIME: AtomicI64 = AtomicI64::new(0);
/// The time that queries of this transaction were given ([`super::distributed`]); 0: none was.
static GIVEN: AtomicI64 = AtomicI64::new(0);

/// What runs, the innermost last.
static RUNNING: Scoped<RunningQuery> = Scoped::new();

#[derive(Clone, Copy)]
struct RunningQuery {
    /// 0 in a utility statement.
    time: i64,
    snapshot: pg_sys::Snapshot,
}

impl RunningQuery {
    /// No query is running.
    const NONE: Self = Self {
        time: 0,
        snapshot: core::ptr::null_mut(),
    };

    fn current() -> Self {
        RUNNING.current().unwrap_or(Self::NONE)
    }

    /// Makes it the running query, until [`leave`] or an error.
    fn enter(self) -> Scope {
        let scope = RUNNING.enter(self);
        judge_by(self.time);
        scope
    }
}

/// Ends what began with the scope, and within it: the query outside goes on.
#[inline]
pub(crate) fn leave(scope: Scope) {
    RUNNING.leave(scope);
    judge_by(RunningQuery::current().time);
}

fn judge_by(time: i64) {
    TIME.store(time, Relaxed);
    parallel::tell_workers(time);
}

/// A time that is kept with an executor state, and freed with it.
static KEPT: Mark<i64> = Mark::new();

/// The time of the running query.
#[inline]
pub(crate) fn time() -> Option<i64> {
    match TIME.load(Relaxed) {
        0 => None,
        time => Some(time),
    }
}

/// A query begins, with the time of its statement. If it shares the snapshot of the running
/// query (a function that is not VOLATILE), it has that one's time.
pub(crate) fn begin(query: ExecutorQuery<'_>) -> Scope {
    let (outer, snapshot) = (RunningQuery::current(), query.snapshot());
    let inherits = outer.time != 0 && !snapshot.is_null() && outer.snapshot == snapshot;
    let time = if inherits {
        outer.time
    } else {
        statement_now()
    };
    RunningQuery { time, snapshot }.enter()
}

/// The query has been started: its executor state keeps the time. It fails for want of memory
/// only.
pub(crate) fn keep(query: ExecutorQuery<'_>) {
    if let Some(memory) = query.memory() {
        KEPT.keep(memory, TIME.load(Relaxed));
    }
}

/// Keeps the time in the memory of an executor state.
///
/// # Safety
/// As [`Context::of`].
pub(crate) unsafe fn keep_in(context: pg_sys::MemoryContext) {
    // SAFETY: as required of the caller.
    KEPT.keep(unsafe { Context::of(context) }, TIME.load(Relaxed));
}

/// A query goes on, by the time that it keeps.
pub(crate) fn go_on(query: ExecutorQuery<'_>) -> Scope {
    let kept = query.memory().and_then(|memory| KEPT.find(memory));
    let running = kept.map_or_else(RunningQuery::current, |time| RunningQuery {
        time,
        snapshot: query.snapshot(),
    });
    running.enter()
}

/// Whether a time is kept in this memory.
pub(super) fn is_kept_in(memory: Context<'_>) -> bool {
    KEPT.find(memory).is_some()
}

/// The running query judges rows by this time, and goes on to when it has waited: until
/// [`leave`] what is kept of it, until [`forget_given`] that a wait does not count.
pub(super) fn give(time: i64) {
    GIVEN.store(time, Relaxed);
    RUNNING.change(|running| running.time = time);
    judge_by(time);
}

/// Whether the running query's time was given.
#[inline]
pub(super) fn is_given() -> bool {
    let time = TIME.load(Relaxed);
    time != 0 && time == GIVEN.load(Relaxed)
}

/// The transaction to which a time was given has ended. Raises no error.
pub(crate) fn forget_given() {
    GIVEN.store(0, Relaxed);
}

/// The running query has waited: from here on it judges rows by this time, until
/// [`leave`].
pub(crate) fn advance(time: i64) -> Scope {
    let outer = RunningQuery::current();
    RunningQuery { time, ..outer }.enter()
}

/// A utility statement runs. COPY and DDL go by the time of their statement, also inside a
/// function that a query calls.
pub(crate) fn suspend() -> Scope {
    RunningQuery::NONE.enter()
}

/// Called when a transaction or subtransaction is rolled back, after `scoped::at_abort`: queries that began in it are
/// over. Raises no error.
pub(crate) fn at_abort() {
    judge_by(RunningQuery::current().time);
}

//! A query keeps the time at which it began (`docs/decisions/0025-a-cursor-keeps-its-time.md`).
//!
//! Several statements of the client may fetch from one cursor or portal. They all see the data
//! as of its opening, so rows are judged by the time of its opening, too.

use super::now::statement_now;
use crate::pg::abi::context::{Context, Mark};
use crate::pg::abi::variable::Variable;
use crate::pg::exec::executor::ExecutorQuery;
use crate::pg::server::parallel;
use core::sync::atomic::{AtomicI64, AtomicPtr, Ordering::Relaxed};
use pgrx::pg_sys;
use std::cell::RefCell;

/// The time of the running query; 0 if none is running.
static TIME: AtomicI64 = AtomicI64::new(0);
/// The time that queries of this transaction were given ([`super::distributed`]); 0: none was.
static GIVEN: AtomicI64 = AtomicI64::new(0);
/// Its snapshot.
static SNAPSHOT: AtomicPtr<pg_sys::SnapshotData> = AtomicPtr::new(core::ptr::null_mut());

/// What was running when each open subtransaction began, the outermost first.
static AT_SUBXACT_START: Variable<RefCell<Vec<RunningQuery>>> =
    Variable::new(RefCell::new(Vec::new()));

/// The running query. `Copy`: the hooks own no values with destructors.
#[derive(Clone, Copy)]
pub(crate) struct RunningQuery {
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
        Self {
            time: TIME.load(Relaxed),
            snapshot: SNAPSHOT.load(Relaxed),
        }
    }

    /// Makes it the running query and returns the former one, for [`Self::resume`]. After an
    /// error [`at_abort`] and [`at_subxact_abort`] do that.
    fn replace(self) -> Self {
        let outer = Self::current();
        self.resume();
        outer
    }

    /// Makes it the running query again.
    #[inline]
    pub(crate) fn resume(self) {
        TIME.store(self.time, Relaxed);
        SNAPSHOT.store(self.snapshot, Relaxed);
        parallel::tell_workers(self.time);
    }
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
pub(crate) fn begin(query: ExecutorQuery<'_>) -> RunningQuery {
    let (outer, snapshot) = (RunningQuery::current(), query.snapshot());
    let inherits = outer.time != 0 && !snapshot.is_null() && outer.snapshot == snapshot;
    let time = if inherits {
        outer.time
    } else {
        statement_now()
    };
    RunningQuery { time, snapshot }.replace()
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
pub(crate) fn go_on(query: ExecutorQuery<'_>) -> RunningQuery {
    match query.memory().and_then(|memory| KEPT.find(memory)) {
        Some(time) => {
            let snapshot = query.snapshot();
            RunningQuery { time, snapshot }.replace()
        }
        None => RunningQuery::current(),
    }
}

/// Whether a time is kept in this memory.
pub(super) fn is_kept_in(memory: Context<'_>) -> bool {
    KEPT.find(memory).is_some()
}

/// The running query judges rows by this time, and goes on to when it has waited: until
/// [`Running::resume`] what is kept of it, until [`forget_given`] that a wait does not count.
pub(super) fn give(time: i64) {
    GIVEN.store(time, Relaxed);
    let given = RunningQuery {
        time,
        ..RunningQuery::current()
    };
    given.resume();
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
/// [`Running::resume`].
pub(crate) fn advance(time: i64) -> RunningQuery {
    let outer = RunningQuery::current();
    RunningQuery { time, ..outer }.replace()
}

/// A utility statement runs. COPY and DDL go by the time of their statement, also inside a
/// function that a query calls.
pub(crate) fn suspend() -> RunningQuery {
    RunningQuery::NONE.replace()
}

/// The transaction was aborted. Raises no error.
pub(crate) fn at_abort() {
    AT_SUBXACT_START.with_borrow_mut(Vec::clear);
    RunningQuery::NONE.resume();
}

/// A subtransaction has begun. Raises no error.
pub(crate) fn at_subxact_start(level: i32) {
    AT_SUBXACT_START.with_borrow_mut(|started| {
        let depth = usize::try_from(level).unwrap_or(0);
        started.truncate(depth);
        started.resize(depth, RunningQuery::NONE);
        started.push(RunningQuery::current());
    });
}

/// A subtransaction was aborted: queries that began in it are over. Raises no error.
pub(crate) fn at_subxact_abort(level: i32) {
    let depth = usize::try_from(level).unwrap_or(0);
    let outer = AT_SUBXACT_START.with_borrow(|started| started.get(depth).copied());
    outer.unwrap_or(RunningQuery::NONE).resume();
}

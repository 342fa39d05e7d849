//! A time limit for what a background worker runs.
//!
//! PostgreSQL arms `statement_timeout` for clients only. And a user's function may catch the
//! cancellation and go on: so it is repeated, and finally the worker ends itself, which nothing
//! can catch.
//!
//! A turn at a table ([`Turn`]) has a limit for each of its transactions and one for all of them
//! together, and gives way earlier if asked to.

use crate::pg::abi::externs::{self, timeout};
use crate::pg::abi::variable::Variable;
use core::ffi::c_int;
use pgrx::pg_sys;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering};
use std::time::{Duration, Instant};

/// How many cancellations come before the worker is ended: one and a half seconds.
const CANCELLATIONS: i32 = 6;
/// The pause between two cancellations, and between two checks whether others wait.
const REPEAT_MS: c_int = 250;
/// What a transaction still has when the turn's time is over: it looks something up.
const LEAST: Duration = Duration::from_millis(50);
/// How much later than its own time limit a transaction is ended from outside: the limit ends it
/// first, unless code in the process has found a way to prevent that.
const GRACE: Duration = Duration::from_secs(4);

/// In a process that runs no user code.
const NOT_REGISTERED: i32 = -1;
static ID: AtomicI32 = AtomicI32::new(NOT_REGISTERED);
static FIRED: AtomicI32 = AtomicI32::new(0);
static UNTIL: AtomicI64 = AtomicI64::new(i64::MAX);
/// From this time on it ends if others wait.
static GIVES_WAY_AT: AtomicI64 = AtomicI64::new(i64::MAX);
static GAVE_WAY: AtomicBool = AtomicBool::new(false);
static CALLS: OnceLock<TimeoutCallbacks> = OnceLock::new();

/// Functions for the signal handler: atomics only.
#[derive(Clone, Copy)]
pub(crate) struct TimeoutCallbacks {
    /// Whether the turn is to make room for others.
    pub(crate) is_asked_for_room: fn() -> bool,
    /// When the transaction that begins must have ended, on the monotonic clock; 0: it has ended.
    /// Another process ends this one after it. Not called in a signal handler.
    pub(crate) has_deadline: fn(i64),
}

/// Registers the time limits; once in a worker.
pub(crate) fn init(calls: TimeoutCallbacks) {
    if CALLS.set(calls).is_err() {
        return;
    }
    // SAFETY: the handler is a plain function that is safe in a signal handler.
    let id = unsafe { timeout::RegisterTimeout(timeout::USER_TIMEOUT, on_timeout) };
    ID.store(id, Ordering::Relaxed);
}

/// A running time limit, which ends when dropped.
pub(crate) struct TimeLimit(Instant);

impl TimeLimit {
    /// Starts now.
    pub(crate) fn start(limit: Duration) -> Self {
        FIRED.store(0, Ordering::Relaxed);
        GAVE_WAY.store(false, Ordering::Relaxed);
        let id = ID.load(Ordering::Relaxed);
        if id != NOT_REGISTERED {
            let now = externs::GetCurrentTimestamp();
            let until = now.saturating_add(micros(limit));
            let patience = TURN.get().map(|turn| micros(turn.patience));
            let gives_way = patience.map_or(i64::MAX, |patience| now.saturating_add(patience));
            UNTIL.store(until, Ordering::Relaxed);
            GIVES_WAY_AT.store(gives_way, Ordering::Relaxed);
            // SAFETY: `init` has registered the timeout's ID in this process.
            unsafe { timeout::enable_timeout_every(id, until.min(gives_way), REPEAT_MS) };
            let deadline = super::background::monotonic().saturating_add(micros(limit + GRACE));
            tell_deadline(deadline);
        }
        Self(Instant::now())
    }

    /// Whether the last limit was exceeded, or has given way.
    pub(crate) fn exceeded() -> bool {
        FIRED.load(Ordering::Relaxed) > 0
    }

    /// Whether the last limit has given way to others.
    pub(crate) fn gave_way() -> bool {
        GAVE_WAY.load(Ordering::Relaxed)
    }
}

impl Drop for TimeLimit {
    fn drop(&mut self) {
        let id = ID.load(Ordering::Relaxed);
        if id == NOT_REGISTERED {
            return;
        }
        // SAFETY: `init` has registered the timeout's ID in this process.
        unsafe { timeout::disable_timeout(id, false) };
        tell_deadline(0);
        if Self::exceeded() {
            // SAFETY: sets flags; a late cancellation must not hit what follows.
            unsafe { pg_sys::QueryCancelPending = 0 };
        }
        if let Some(mut turn) = TURN.get() {
            turn.spent.longest = turn.spent.longest.max(self.0.elapsed());
            turn.spent.timed_out |= Self::exceeded();
            turn.spent.gave_way |= Self::gave_way();
            TURN.set(Some(turn));
        }
    }
}

/// A limit from outside only, which ends when dropped: another process ends this one some seconds after it. What the last
/// [`TimeLimit`] has found stays.
pub(crate) struct OutsideLimit;

impl OutsideLimit {
    /// Starts now.
    pub(crate) fn start(limit: Duration) -> Self {
        tell_deadline(super::background::monotonic().saturating_add(micros(limit + GRACE)));
        Self
    }
}

impl Drop for OutsideLimit {
    fn drop(&mut self) {
        tell_deadline(0);
    }
}

fn tell_deadline(deadline: i64) {
    if let Some(calls) = CALLS.get() {
        (calls.has_deadline)(deadline);
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TimeSpent {
    /// In total, without pauses.
    pub(crate) took: Duration,
    /// Its longest transaction.
    pub(crate) longest: Duration,
    /// One was cancelled for its time,
    pub(crate) timed_out: bool,
    /// because others waited.
    pub(crate) gave_way: bool,
}

/// A turn at a table, in which its owner's code may run.
#[derive(Clone, Copy)]
pub(crate) struct TimedTurn {
    began: Instant,
    paused: Duration,
    each: Duration,
    whole: Duration,
    patience: Duration,
    spent: TimeSpent,
}

static TURN: Variable<Cell<Option<TimedTurn>>> = Variable::new(Cell::new(None));

impl TimedTurn {
    /// Begins a turn. Each transaction has `each`, and all together have `whole`; one that takes
    /// longer than `patience` ends when others wait.
    pub(crate) fn begin(each: Duration, whole: Duration, patience: Duration) {
        TURN.set(Some(Self {
            began: Instant::now(),
            paused: Duration::ZERO,
            each,
            whole,
            patience,
            spent: TimeSpent::default(),
        }));
    }

    pub(crate) fn end() -> TimeSpent {
        TURN.take().map_or(TimeSpent::default(), |turn| TimeSpent {
            took: turn.began.elapsed().saturating_sub(turn.paused),
            ..turn.spent
        })
    }

    /// Leaves a pause out of the turn's time.
    pub(crate) fn paused(pause: Duration) {
        if let Some(mut turn) = TURN.get() {
            turn.paused += pause;
            TURN.set(Some(turn));
        }
    }

    /// Leaves the turn no more than this time.
    pub(crate) fn leave(rest: Duration) {
        if let Some(mut turn) = TURN.get() {
            let gone = turn.began.elapsed().saturating_sub(turn.paused);
            turn.whole = turn.whole.min(gone + rest);
            TURN.set(Some(turn));
        }
    }

    /// The limit of a transaction that begins now; `most` outside a turn.
    pub(crate) fn limit(most: Duration) -> Duration {
        TURN.get().map_or(most, |turn| {
            let gone = turn.began.elapsed().saturating_sub(turn.paused);
            let left = turn.whole.saturating_sub(gone).max(LEAST);
            most.min(turn.each).min(left)
        })
    }

    /// Whether one of its transactions was cancelled for its time.
    pub(crate) fn has_timed_out() -> bool {
        TURN.get().is_some_and(|turn| turn.spent.timed_out)
    }

    /// Whether its transactions have less than `most`, or had to end because others waited.
    pub(crate) fn is_limited(most: Duration) -> bool {
        TURN.get()
            .is_some_and(|turn| turn.each < most || turn.spent.gave_way)
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 2)
}

/// Runs in a signal handler: atomics, the clock and kill(2) only.
extern "C-unwind" fn on_timeout() {
    let now = externs::GetCurrentTimestamp();
    let asked = || CALLS.get().is_some_and(|calls| (calls.is_asked_for_room)());
    let fired = FIRED.load(Ordering::Relaxed);
    if fired == 0 && now < UNTIL.load(Ordering::Relaxed) {
        if now < GIVES_WAY_AT.load(Ordering::Relaxed) || !asked() {
            return;
        }
        GAVE_WAY.store(true, Ordering::Relaxed);
    }
    FIRED.store(fired + 1, Ordering::Relaxed);
    let signal = if fired < CANCELLATIONS {
        libc::SIGINT
    } else {
        libc::SIGTERM
    };
    // SAFETY: the signal goes to this process, which handles it like PostgreSQL's own.
    unsafe { libc::kill(pg_sys::MyProcPid, signal) };
}

//! A time limit for what a background worker runs.
//!
//! PostgreSQL arms `statement_timeout` for clients only. And a function of a
//! user may catch the cancellation and go on: so it is repeated, and at last the
//! worker ends itself, which nothing can catch.

use super::externs::{self, timeout};
use core::ffi::c_int;
use pgrx::pg_sys;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

const SIGINT: c_int = 2;
const SIGTERM: c_int = 15;
/// How often it cancels before it ends the worker.
const CANCELLATIONS: i32 = 3;
/// The pause after the first cancellation.
const REPEAT_MS: c_int = 1000;

/// A process that runs no code of users.
const NOT_REGISTERED: i32 = -1;
static ID: AtomicI32 = AtomicI32::new(NOT_REGISTERED);
static FIRED: AtomicI32 = AtomicI32::new(0);

/// Registers the time limit; once in a worker.
pub(crate) fn init() {
    // SAFETY: the handler is a plain function that is safe in a signal handler.
    let id = unsafe { timeout::RegisterTimeout(timeout::USER_TIMEOUT, on_timeout) };
    ID.store(id, Ordering::Relaxed);
}

/// A running time limit; ends when dropped.
pub(crate) struct Limit(());

impl Limit {
    /// From now on.
    pub(crate) fn start(limit: Duration) -> Self {
        FIRED.store(0, Ordering::Relaxed);
        let id = ID.load(Ordering::Relaxed);
        if id == NOT_REGISTERED {
            return Self(());
        }
        let micros = i64::try_from(limit.as_micros()).unwrap_or(i64::MAX / 2);
        // SAFETY: the ID is registered.
        unsafe {
            let until = externs::GetCurrentTimestamp().saturating_add(micros);
            timeout::enable_timeout_every(id, until, REPEAT_MS);
        }
        Self(())
    }

    /// Whether the last one has been exceeded.
    pub(crate) fn exceeded() -> bool {
        FIRED.load(Ordering::Relaxed) > 0
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        let id = ID.load(Ordering::Relaxed);
        if id == NOT_REGISTERED {
            return;
        }
        // SAFETY: the ID is registered.
        unsafe { timeout::disable_timeout(id, false) };
        if Self::exceeded() {
            // SAFETY: plain flags; a cancellation that came late must not hit what follows.
            unsafe { pg_sys::QueryCancelPending = 0 };
        }
    }
}

/// Runs in a signal handler: atomics and kill(2) only.
extern "C-unwind" fn on_timeout() {
    let fired = FIRED.fetch_add(1, Ordering::Relaxed);
    let signal = if fired < CANCELLATIONS {
        SIGINT
    } else {
        SIGTERM
    };
    // SAFETY: a signal to this process.
    unsafe { externs::kill(pg_sys::MyProcPid, signal) };
}

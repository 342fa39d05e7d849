//! An execution keeps the time at which it began (`docs/decisions/0025-a-cursor-keeps-its-time.md`).
//!
//! A cursor, and a portal of the extended protocol, is executed in many statements of the
//! client, which all see the data as they were when it was opened: so they judge rows by the
//! clock as it was then.

use super::now::statement_now;
use crate::pg::externs;
use core::ffi::c_void;
use core::sync::atomic::{AtomicI64, AtomicPtr, Ordering::Relaxed};
use pgrx::pg_sys;
use std::cell::RefCell;

/// The time of the execution that is running; 0: none is.
static TIME: AtomicI64 = AtomicI64::new(0);
/// Its snapshot.
static SNAPSHOT: AtomicPtr<pg_sys::SnapshotData> = AtomicPtr::new(core::ptr::null_mut());

thread_local! {
    /// What was running when each of the open subtransactions began, the outermost one first.
    static AT_SUBXACT_START: RefCell<Vec<Running>> = const { RefCell::new(Vec::new()) };
}

/// The execution that is running. `Copy`: the hooks hold nothing that needs dropping.
#[derive(Clone, Copy)]
pub(crate) struct Running {
    time: i64,
    snapshot: pg_sys::Snapshot,
}

impl Running {
    /// What runs is no query.
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

    /// Puts it in the place of what is running, which is returned for [`Self::resume`]. An
    /// error instead ends it through [`at_abort`] and [`at_subxact_abort`].
    fn replace(self) -> Self {
        let outer = Self::current();
        self.resume();
        outer
    }

    /// Goes on with it.
    #[inline]
    pub(crate) fn resume(self) {
        TIME.store(self.time, Relaxed);
        SNAPSHOT.store(self.snapshot, Relaxed);
        super::parallel::tell_workers(self.time);
    }
}

/// A time that is kept with an executor's state, and goes with it. Its memory context's list
/// of callbacks is where it is found again: there is no other place for what is not
/// PostgreSQL's own.
#[repr(C)]
struct Kept {
    callback: pg_sys::MemoryContextCallback,
    time: i64,
}

/// The argument of our callbacks, by which they are told from others'.
static OURS: u8 = 0;

/// The context goes: there is nothing to do.
unsafe extern "C-unwind" fn forget(_ours: *mut c_void) {}

/// The time of the execution that is running.
#[inline]
pub(crate) fn time() -> Option<i64> {
    match TIME.load(Relaxed) {
        0 => None,
        time => Some(time),
    }
}

/// A query begins: by the clock of its statement; but where it sees the data by the very
/// snapshot of the query that runs (a function that is not VOLATILE), by that one's time.
///
/// # Safety
/// `query` is about to be started.
pub(crate) unsafe fn begin(query: *mut pg_sys::QueryDesc) -> Running {
    let outer = Running::current();
    // SAFETY: as required of the caller.
    let snapshot = unsafe { (*query).snapshot };
    let inherits = outer.time != 0 && !snapshot.is_null() && outer.snapshot == snapshot;
    let time = if inherits {
        outer.time
    } else {
        statement_now()
    };
    Running { time, snapshot }.replace()
}

/// The query has been started: its state keeps the time. Unguarded, with nothing to drop: it
/// fails for want of memory only.
///
/// # Safety
/// As [`begin`], after it.
pub(crate) unsafe fn keep(query: *mut pg_sys::QueryDesc) {
    // SAFETY: the executor's state and its memory context are there.
    unsafe {
        if let Some(estate) = (*query).estate.as_ref() {
            keep_in(estate.es_query_cxt);
        }
    }
}

/// Leaves the time with the memory of an executor's state. Unguarded, as [`keep`].
///
/// # Safety
/// The context is there.
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]
pub(crate) unsafe fn keep_in(context: pg_sys::MemoryContext) {
    // SAFETY: what is allocated in the context lives until the context calls back.
    unsafe {
        let kept = externs::MemoryContextAlloc(context, size_of::<Kept>()).cast::<Kept>();
        kept.write(Kept {
            callback: pg_sys::MemoryContextCallback {
                func: Some(forget),
                arg: (&raw const OURS).cast_mut().cast(),
                next: core::ptr::null_mut(),
            },
            time: TIME.load(Relaxed),
        });
        externs::MemoryContextRegisterResetCallback(context, &raw mut (*kept).callback);
    }
}

/// A query goes on, by the time that it has kept.
///
/// # Safety
/// `query` has been started.
pub(crate) unsafe fn go_on(query: *mut pg_sys::QueryDesc) -> Running {
    // SAFETY: as required of the caller.
    unsafe {
        let estate = (*query).estate.as_ref();
        match estate.and_then(|estate| kept_in(estate.es_query_cxt)) {
            Some(time) => {
                let snapshot = (*query).snapshot;
                Running { time, snapshot }.replace()
            }
            None => Running::current(),
        }
    }
}

/// Whether a time was left with this memory.
///
/// # Safety
/// The context is there.
pub(super) unsafe fn is_kept_in(context: pg_sys::MemoryContext) -> bool {
    // SAFETY: as required of the caller.
    unsafe { kept_in(context) }.is_some()
}

unsafe fn kept_in(context: pg_sys::MemoryContext) -> Option<i64> {
    // SAFETY: the callbacks of a context are a list; ours are the head of a `Kept`.
    unsafe {
        let mut callback = (*context).reset_cbs;
        while let Some(this) = callback.as_ref() {
            if this.arg.cast_const() == (&raw const OURS).cast() {
                return Some((*callback.cast::<Kept>()).time);
            }
            callback = this.next;
        }
    }
    None
}

/// The query that runs has waited: from here on it judges by this time, until
/// [`Running::resume`].
pub(crate) fn advance(time: i64) -> Running {
    let outer = Running::current();
    Running { time, ..outer }.replace()
}

/// A utility statement runs: what it does itself (COPY, DDL), it does by the clock of its
/// statement, also inside a function that a query calls.
pub(crate) fn suspend() -> Running {
    Running::NONE.replace()
}

/// The transaction was aborted. Raises no error.
pub(crate) fn at_abort() {
    AT_SUBXACT_START.with_borrow_mut(Vec::clear);
    Running::NONE.resume();
}

/// A subtransaction has begun. Raises no error.
pub(crate) fn at_subxact_start(level: i32) {
    AT_SUBXACT_START.with_borrow_mut(|started| {
        let depth = usize::try_from(level).unwrap_or(0);
        started.truncate(depth);
        started.resize(depth, Running::NONE);
        started.push(Running::current());
    });
}

/// A subtransaction was aborted: what had begun inside it is over. Raises no error.
pub(crate) fn at_subxact_abort(level: i32) {
    let depth = usize::try_from(level).unwrap_or(0);
    let outer = AT_SUBXACT_START.with_borrow(|started| started.get(depth).copied());
    outer.unwrap_or(Running::NONE).resume();
}

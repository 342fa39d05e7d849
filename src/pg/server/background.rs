//! Background workers: registering, connecting, signals, waiting.

use crate::pg::abi::externs;
use core::ffi::c_int;
use pgrx::bgworkers::BackgroundWorkerBuilder;
use pgrx::pg_sys;
use std::time::Duration;

/// How a worker is registered.
pub(crate) struct Registration<'a> {
    /// For the log, and the type in pg_stat_activity.
    pub(crate) name: &'a str,
    /// The exported function to run.
    pub(crate) function: &'a str,
    pub(crate) argument: i32,
    /// After which time the postmaster restarts it after a crash.
    pub(crate) restart: Option<Duration>,
}

impl Registration<'_> {
    fn builder(&self) -> BackgroundWorkerBuilder {
        BackgroundWorkerBuilder::new(self.name)
            .set_library(env!("CARGO_PKG_NAME"))
            .set_function(self.function)
            .set_argument(Some(pg_sys::Datum::from(self.argument)))
            .set_restart_time(self.restart)
            // Not before recovery has ended: a standby deletes nothing (M10).
            .enable_spi_access()
    }

    /// Registers it with the postmaster, unless that is pg_upgrade's; while libraries are
    /// preloaded.
    pub(crate) fn register_static(&self) {
        // SAFETY: reads a variable that only the start of the server sets.
        if unsafe { !pg_sys::IsBinaryUpgrade } {
            self.builder().load();
        }
    }

    /// Asks the postmaster to start it; `None` if there is no slot left.
    pub(crate) fn start(&self) -> Option<WorkerHandle> {
        let mut worker = pg_sys::BackgroundWorker::from(&self.builder().set_notify_pid(my_pid()));
        // SAFETY: the structure is copied; the handle is allocated where it lives
        // as long as this process.
        unsafe {
            let former = pg_sys::MemoryContextSwitchTo(pg_sys::TopMemoryContext);
            let mut handle = core::ptr::null_mut();
            let started = pg_sys::RegisterDynamicBackgroundWorker(&mut worker, &mut handle);
            pg_sys::MemoryContextSwitchTo(former);
            // Not then_some, which would drop a handle that does not exist.
            started.then(|| WorkerHandle(handle))
        }
    }
}

/// A worker that this process has started.
pub(crate) struct WorkerHandle(*mut pg_sys::BackgroundWorkerHandle);

impl WorkerHandle {
    /// Whether it has ended, or could not start.
    pub(crate) fn is_stopped(&self) -> bool {
        let mut pid = 0;
        // SAFETY: the handle is valid until it is dropped.
        let status = unsafe { pg_sys::GetBackgroundWorkerPid(self.0, &mut pid) };
        [
            pg_sys::BgwHandleStatus::BGWH_STOPPED,
            pg_sys::BgwHandleStatus::BGWH_POSTMASTER_DIED,
        ]
        .contains(&status)
    }
}

impl Drop for WorkerHandle {
    fn drop(&mut self) {
        // SAFETY: allocated by RegisterDynamicBackgroundWorker.
        unsafe { pg_sys::pfree(self.0.cast()) };
    }
}

/// Installs PostgreSQL's own signal handlers: SIGTERM ends the process at the next check for
/// interrupts, even within a statement.
pub(crate) fn handle_signals() {
    // SAFETY: the handlers are PostgreSQL's own; signals are still blocked.
    unsafe {
        #[cfg(not(since18))]
        use pg_sys::pqsignal;
        #[cfg(since18)]
        use pg_sys::pqsignal_be as pqsignal;
        pqsignal(libc::SIGHUP, Some(externs::SignalHandlerForConfigReload));
        pqsignal(libc::SIGTERM, Some(externs::die));
        // PostgreSQL ignores SIGHUP while it starts the process: one that comes then is lost, and the
        // configuration is that of before.
        pg_sys::ConfigReloadPending = 1;
        pg_sys::BackgroundWorkerUnblockSignals();
    }
}

/// Connects to a database as the bootstrap superuser, or to none: then only shared catalogs can be
/// read.
pub(crate) fn connect(database: Option<pg_sys::Oid>) {
    // SAFETY: once, at the start of a background worker.
    unsafe {
        match database {
            Some(oid) => {
                pg_sys::BackgroundWorkerInitializeConnectionByOid(oid, pg_sys::InvalidOid, 0);
            }
            None => pg_sys::BackgroundWorkerInitializeConnection(
                core::ptr::null(),
                core::ptr::null(),
                0,
            ),
        }
    }
    report_type();
}

/// Connects to a database as this role, which is the authenticated user for the life of the
/// process. Ends the process (FATAL) where PostgreSQL does not let the role connect; NOLOGIN does
/// not matter from 17 on.
pub(crate) fn connect_as(database: pg_sys::Oid, role: pg_sys::Oid) {
    #[cfg(not(since17))]
    let flags = 0;
    #[cfg(since17)]
    let flags = pg_sys::BGWORKER_BYPASS_ROLELOGINCHECK;
    // SAFETY: once, at the start of a background worker.
    unsafe { pg_sys::BackgroundWorkerInitializeConnectionByOid(database, role, flags) };
    report_type();
}

fn report_type() {
    // SAFETY: the worker's entry lives as long as the process.
    unsafe { pg_sys::pgstat_report_appname((*pg_sys::MyBgworkerEntry).bgw_type.as_ptr()) };
}

/// Waits until this process's latch is set, or for `timeout_ms`.
pub(crate) fn wait(timeout_ms: i64) {
    wait_latch(timeout_ms);
    // SAFETY: MyLatch is the latch of this process, which exists until it exits.
    unsafe { pg_sys::ResetLatch(pg_sys::MyLatch) };
    pgrx::check_for_interrupts!();
}

fn wait_latch(timeout_ms: i64) {
    let events = pg_sys::WL_LATCH_SET | pg_sys::WL_TIMEOUT | pg_sys::WL_EXIT_ON_PM_DEATH;
    let (events, extension) = (events.cast_signed(), pg_sys::PG_WAIT_EXTENSION);
    // SAFETY: MyLatch is the latch of this process, which exists until it exits.
    unsafe { pg_sys::WaitLatch(pg_sys::MyLatch, events, timeout_ms, extension) };
}

/// Ends this process if the postmaster is gone, which a process that never waits would not
/// notice.
pub(crate) fn check_postmaster() {
    // The latch stays as it is.
    wait_latch(0);
    pgrx::check_for_interrupts!();
}

/// Sleeps for that long, in any process.
pub(crate) fn sleep(time: Duration) {
    let micros = i64::try_from(time.as_micros()).unwrap_or(0);
    // SAFETY: sleeps; raises at the check if the statement is cancelled.
    unsafe { pg_sys::pg_usleep(micros) };
    pgrx::check_for_interrupts!();
}

/// Wakes another process of this server, if it is there.
pub(crate) fn wake(pid: i32) {
    if pid <= 0 {
        return;
    }
    // SAFETY: a process that has ended is not found; setting the latch of one
    // that has taken its place does no harm.
    unsafe {
        if let Some(process) = pg_sys::BackendPidGetProc(pid).as_mut() {
            pg_sys::SetLatch(&mut process.procLatch);
        }
    }
}

/// Asks another process of this server to terminate.
pub(crate) fn terminate(pid: i32) {
    if is_alive(pid) {
        // SAFETY: kill() accepts any number; the PID is that of a process which this server has started.
        unsafe { libc::kill(pid, libc::SIGTERM) };
    }
}

/// Whether a process of this server has this PID.
pub(crate) fn is_alive(pid: i32) -> bool {
    // SAFETY: the function takes the lock that it needs, and accepts any PID.
    pid > 0 && unsafe { !pg_sys::BackendPidGetProc(pid).is_null() }
}

/// Whether this server is a standby, or has not recovered yet.
pub(crate) fn in_recovery() -> bool {
    // SAFETY: the function reads shared memory by atomic operations, and caches the answer.
    unsafe { pg_sys::RecoveryInProgress() }
}

/// The timeline on which this server writes, which is not in recovery.
pub(crate) fn timeline() -> u32 {
    // SAFETY: reads shared memory, where recovery has set it at its end.
    unsafe { pg_sys::GetWALInsertionTimeLine() }
}

/// The setting `max_worker_processes`.
pub(crate) fn max_processes() -> i32 {
    // SAFETY: reads a variable that only the start of the server sets.
    unsafe { pg_sys::max_worker_processes }
}

pub(crate) fn my_pid() -> i32 {
    // SAFETY: reads a variable that only this process writes.
    unsafe { pg_sys::MyProcPid }
}

/// The database that this process is connected to.
pub(crate) fn my_database() -> pg_sys::Oid {
    // SAFETY: reads a variable that only this process writes.
    unsafe { pg_sys::MyDatabaseId }
}

/// Whether this process serves no client: a background worker of any extension, or autovacuum.
#[inline]
pub(crate) fn is_background() -> bool {
    use pg_sys::BackendType::{B_AUTOVAC_WORKER, B_BG_WORKER};
    // SAFETY: reads a variable that only this process writes.
    let own = unsafe { pg_sys::MyBackendType };
    [B_AUTOVAC_WORKER, B_BG_WORKER].contains(&own)
}

/// Microseconds on a clock that is never set, the same for all processes of the server, for
/// everything that is scheduled. It goes on while the machine sleeps.
pub(crate) fn monotonic() -> i64 {
    #[cfg(target_os = "linux")]
    const CLOCK: libc::clockid_t = libc::CLOCK_BOOTTIME;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: fills the structure. It cannot fail: the clock exists.
    unsafe { libc::clock_gettime(CLOCK, &mut time) };
    time.tv_sec
        .saturating_mul(1_000_000)
        .saturating_add(time.tv_nsec / 1000)
}

/// How far the wall clock is ahead of [`monotonic`], in microseconds: constant as long as nothing
/// sets the wall clock.
pub(crate) fn wall_offset() -> i64 {
    now().saturating_sub(monotonic())
}

/// The current time by the wall clock, as a timestamptz.
pub(crate) fn now() -> i64 {
    externs::GetCurrentTimestamp()
}

/// How long the present transaction has been running, in microseconds.
pub(crate) fn transaction_age() -> i64 {
    now().saturating_sub(externs::GetCurrentTransactionStartTimestamp())
}

/// Runs `function` when this process ends, before it lets go of shared memory.
pub(crate) fn before_exit(function: extern "C-unwind" fn(c_int, pg_sys::Datum)) {
    // SAFETY: the function lives as long as the library.
    unsafe { pg_sys::before_shmem_exit(Some(function), pg_sys::Datum::from(0)) };
}

/// Ends this process by design, so that the postmaster does not log it.
#[allow(unreachable_code, reason = "bound without its 'noreturn' on 18")]
pub(crate) fn exit() -> ! {
    // SAFETY: no transaction is open, and nothing of this process is needed any more.
    unsafe { pg_sys::proc_exit(0) };
    unreachable!("proc_exit does not return")
}

//! The launcher: one process for the server, connected to no database. It
//! starts a worker in each database where something is due.

use super::shared::{self, Database};
use super::state;
use super::{log, worker};
use crate::pg::background::{self, Handle, Registration};
use crate::pg::txn::{self, Failure};
use crate::pg::{activity, databases, session};
use crate::settings;
use core::ffi::c_int;
use pgrx::prelude::*;
use std::collections::HashSet;
use std::sync::atomic::Ordering;

/// The shortest time between two starts of a worker in one database, and after
/// which one is started again that has died.
const START_GAP: i64 = 1_000_000;
const AFTER_DEATH: i64 = 5_000_000;
/// How long it waits before it tries again to start a worker, if none can be.
const RETRY: i64 = 5_000_000;

/// Registers the launcher with the postmaster; while libraries are preloaded.
pub(super) fn register() {
    // SAFETY: reads a variable that is set before libraries are loaded.
    if unsafe { pg_sys::IsBinaryUpgrade } {
        return;
    }
    Registration {
        name: "ttl_ext launcher",
        function: "ttl_ext_launcher_main",
        argument: 0,
        restart: Some(1),
    }
    .register_static();
}

/// The entry point of the launcher.
#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ttl_ext_launcher_main(_argument: pg_sys::Datum) {
    background::handle_signals();
    background::connect(None);
    background::before_exit(forget_launcher);
    shared::control()
        .launcher
        .store(background::my_pid(), Ordering::Release);
    log::debug("ttl_ext launcher started");
    let mut launcher = Launcher::default();
    loop {
        if session::reload_if_asked() {
            log::debug("ttl_ext launcher reloaded its configuration");
        }
        let due = match launcher.round() {
            Ok(due) => due,
            Err(failure) => failure.raise_fatal(),
        };
        activity::idle();
        let sleep = (due - background::now()).clamp(1_000, settings::naptime());
        background::wait(sleep / 1000);
    }
}

unsafe extern "C-unwind" fn forget_launcher(_code: c_int, _arg: pg_sys::Datum) {
    shared::control().launcher.store(0, Ordering::Release);
}

/// A worker that this launcher has started: its slot and the postmaster's handle.
struct Started {
    slot: usize,
    handle: Handle,
}

#[derive(Default)]
struct Launcher {
    /// Databases that have been looked into.
    seen: HashSet<u32>,
    started: Vec<Started>,
}

impl Launcher {
    /// Looks at all databases, starts what is due, and tells when to look again.
    fn round(&mut self) -> Result<i64, Failure> {
        self.reap();
        let now = background::now();
        if !settings::enabled() {
            return Ok(i64::MAX);
        }
        let databases = txn::run(|| Ok(databases::connectable()))?;
        self.look_at_new(&databases);
        self.forget_dropped(&databases);
        let mut due: Vec<&Database> = Vec::new();
        let mut next = i64::MAX;
        for slot in &shared::control().databases {
            let oid = slot.oid.load(Ordering::Acquire);
            if oid == 0 || !databases.allowed.contains(&oid) {
                continue;
            }
            let busy = shared::workers_in(oid).count();
            let held = slot.held_until.load(Ordering::Relaxed);
            if held > now {
                next = next.min(held);
            } else if busy == 0 {
                let at = self.due_without_worker(slot, now);
                if at <= now {
                    due.push(slot);
                } else {
                    next = next.min(at);
                }
            } else if slot.due_tables.load(Ordering::Relaxed) as usize > busy {
                // Help where tables wait, if nobody else needs it more.
                next = next.min(now + START_GAP);
                if now >= slot.started_at.load(Ordering::Relaxed) + START_GAP {
                    due.push(slot);
                }
            }
        }
        // Those without a worker first, and of those the one that waits longest.
        due.sort_by_key(|slot| {
            let oid = slot.oid.load(Ordering::Relaxed);
            (
                shared::workers_in(oid).count(),
                slot.due.load(Ordering::Relaxed),
            )
        });
        let mut waiting = 0;
        for slot in due {
            if !self.start(slot, now) {
                waiting +=
                    u32::from(shared::workers_in(slot.oid.load(Ordering::Relaxed)).count() == 0);
                next = next.min(now + RETRY);
            }
        }
        shared::control().waiting.store(waiting, Ordering::Relaxed);
        Ok(next)
    }

    /// When a worker should be in a database that has none. Whoever waits for
    /// writes there is this process, and has been woken if the flag is down.
    fn due_without_worker(&self, slot: &Database, now: i64) -> i64 {
        let due = slot.due.load(Ordering::Acquire);
        let earliest = slot.started_at.load(Ordering::Relaxed) + START_GAP;
        if slot.changed.load(Ordering::Acquire) {
            return earliest;
        }
        if slot.wants_wake.load(Ordering::Acquire) {
            due.max(earliest)
        } else {
            earliest.max(now.min(due))
        }
    }

    /// Looks once into each database: nobody tells of policies that were there
    /// before this server started, or came with a copy of a database.
    fn look_at_new(&mut self, databases: &databases::Databases) {
        for &oid in &databases.allowed {
            if self.seen.contains(&oid) {
                continue;
            }
            if shared::allot_database(oid).is_some() {
                self.seen.insert(oid);
            } else {
                log::once(
                    "databases",
                    "too many databases with a time to live on this server: in some, expired rows stay on disk",
                    "At most 1024 are served.",
                );
            }
        }
    }

    fn forget_dropped(&mut self, databases: &databases::Databases) {
        // One that may not be connected to now is looked into again later.
        self.seen.retain(|oid| databases.allowed.contains(oid));
        for slot in &shared::control().databases {
            let oid = slot.oid.load(Ordering::Acquire);
            if oid != 0 && !databases.all.contains(&oid) {
                state::remove_tables(|state| state.key.database == oid);
                shared::free_database(slot);
            }
        }
    }

    /// Frees the slots of workers that have ended without doing so themselves:
    /// they could not be started, or not connect.
    fn reap(&mut self) {
        self.started.retain(|started| {
            if !started.handle.is_stopped() {
                return true;
            }
            if let Some(worker) = shared::control().workers.get(started.slot) {
                let pid = worker.pid.load(Ordering::Acquire);
                if pid == shared::STARTING || (pid > 0 && !background::is_alive(pid)) {
                    worker.database.store(0, Ordering::Relaxed);
                    worker.pid.store(0, Ordering::Release);
                }
            }
            false
        });
    }

    /// Starts a worker; false if there is no room for one.
    fn start(&mut self, slot: &Database, now: i64) -> bool {
        let workers = &shared::control().workers;
        let running = workers
            .iter()
            .filter(|w| w.pid.load(Ordering::Acquire) != 0)
            .count();
        let free = workers
            .iter()
            .position(|w| w.pid.load(Ordering::Acquire) == 0);
        let Some(place) = free.filter(|_| running < settings::max_workers()) else {
            return false;
        };
        workers[place]
            .database
            .store(slot.oid.load(Ordering::Relaxed), Ordering::Release);
        workers[place]
            .pid
            .store(shared::STARTING, Ordering::Release);
        slot.started_at.store(now, Ordering::Relaxed);
        // If it dies before it says otherwise.
        slot.due.store(now + AFTER_DEATH, Ordering::Release);
        slot.wants_wake.store(true, Ordering::Release);
        let handle = Registration {
            name: "ttl_ext worker",
            function: worker::ENTRY_POINT,
            argument: i32::try_from(place).unwrap_or(0),
            restart: None,
        }
        .start();
        match handle {
            Some(handle) => {
                log::over("slots");
                // Whoever had the place before has left it, known to be gone or not.
                self.started.retain(|started| started.slot != place);
                self.started.push(Started {
                    slot: place,
                    handle,
                });
                true
            }
            None => {
                workers[place].pid.store(0, Ordering::Release);
                slot.due.store(now, Ordering::Release);
                log::once(
                    "slots",
                    "could not start a ttl_ext worker: no slot for a background worker is free",
                    "Expired rows stay on disk until one is. You may need to raise \"max_worker_processes\".",
                );
                false
            }
        }
    }
}

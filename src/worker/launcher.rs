//! The launcher: one process of the server, connected to no database, that starts a worker in
//! each database where something is due.

use super::claims::{self, Waiting};
use super::fairness::{self, Applicant, Staffed};
use super::shared::{self, Database};
use super::{log, process, state};
use crate::deletion::transaction;
use crate::error::Error;
use crate::pg::background::{self, Handle, Registration};
use crate::pg::{activity, databases, session};
use crate::settings;
use core::ffi::c_int;
use pgrx::prelude::*;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;

/// The shortest time between two starts of a worker in one database, also after a worker has
/// died.
const START_GAP: i64 = 1_000_000;
const AFTER_DEATH: i64 = 5_000_000;
/// The time until the next attempt to start a worker, if the server has no slot,
const RETRY: i64 = 5_000_000;
/// and if all slots are taken by workers that may make room.
const RETRY_SOON: i64 = 500_000;

/// Registers the launcher with the postmaster; while libraries are preloaded.
pub(super) fn register() {
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
    shared::control()
        .launcher_latch
        .store(background::my_latch(), Ordering::Release);
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

extern "C-unwind" fn forget_launcher(_code: c_int, _arg: pg_sys::Datum) {
    shared::control().launcher.store(0, Ordering::Release);
    shared::control().launcher_latch.store(0, Ordering::Release);
}

/// A database that has workers, and what waits there.
fn staffed(
    slot: &Database,
    workers: usize,
    now: i64,
    waiting: &mut Option<HashMap<u32, Waiting>>,
) -> Staffed {
    let oid = slot.oid.load(Ordering::Relaxed);
    let long = shared::workers_in(oid)
        .filter(|worker| worker.long.load(Ordering::SeqCst))
        .count();
    // A worker that notices takes care of it.
    let waits = (long >= workers).then(|| {
        let waiting = waiting.get_or_insert_with(|| claims::waiting(now));
        waiting.get(&oid).copied()
    });
    Staffed {
        workers,
        long,
        unnoticed: slot.is_told(),
        first_due: waits.flatten().map_or(i64::MAX, |waits| waits.first_due),
        due_tables: slot.due_tables.load(Ordering::Relaxed) as usize,
    }
}

/// So many databases wait, and all workers are taken: idle ones check whether they can leave;
/// those at one table for longest make room.
fn ask_for_room(databases: usize) {
    if databases == 0 {
        return;
    }
    let mut long = Vec::new();
    for worker in &shared::control().workers {
        let pid = worker.pid.load(Ordering::Acquire);
        let began = worker.turn.load(Ordering::Acquire);
        if pid > 0 && began == 0 {
            background::wake(pid);
        } else if pid > 0 && worker.long.load(Ordering::Acquire) {
            long.push((!worker.slow.load(Ordering::Relaxed), began, worker));
        }
    }
    long.sort_by_key(|(honest, began, _)| (*honest, *began));
    for (_, _, worker) in long.into_iter().take(databases) {
        worker.give_way.store(true, Ordering::Relaxed);
    }
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
    /// Databases that are due, but got no worker and have none: since when, and when they last
    /// asked.
    refused: HashMap<u32, (i64, i64)>,
    /// Whether `ttl.enabled` was on in the last round.
    is_on: bool,
}

impl Launcher {
    /// Looks at all databases, starts workers where something is due, and returns when to look
    /// again.
    fn round(&mut self) -> Result<i64, Error> {
        self.reap();
        let now = background::now();
        if !settings::enabled() {
            self.is_on = false;
            return Ok(i64::MAX);
        }
        if !std::mem::replace(&mut self.is_on, true) {
            shared::control().on_since.store(now, Ordering::Relaxed);
        }
        let databases = transaction::run(|| Ok(databases::connectable()))?;
        self.look_at_new(&databases);
        self.forget_dropped(&databases);
        let mut due: Vec<&Database> = Vec::new();
        let mut next = i64::MAX;
        // Looked up only if needed: that goes through all tables.
        let mut waiting: Option<HashMap<u32, Waiting>> = None;
        for slot in &shared::control().databases {
            let oid = slot.oid.load(Ordering::Acquire);
            if oid == 0 || !databases.allowed.contains(&oid) {
                continue;
            }
            let workers = shared::workers_in(oid).count();
            let held = slot.held_until.load(Ordering::Relaxed);
            let at = if held > now {
                held
            } else if workers == 0 {
                self.due_without_worker(slot, now)
            } else {
                let database = staffed(slot, workers, now, &mut waiting);
                let at = fairness::needs_another(&database, now);
                let earliest = slot.started_at.load(Ordering::Relaxed) + START_GAP;
                if at == i64::MAX { at } else { at.max(earliest) }
            };
            if held <= now && at <= now {
                due.push(slot);
            } else {
                next = next.min(at);
            }
        }
        Ok(next.min(self.start_all(due, now, waiting)))
    }

    /// Starts a worker in each of these databases, as far as there is room; returns when to try
    /// again.
    fn start_all(
        &mut self,
        mut due: Vec<&Database>,
        now: i64,
        waiting: Option<HashMap<u32, Waiting>>,
    ) -> i64 {
        let oid = |slot: &Database| slot.oid.load(Ordering::Relaxed);
        self.refused
            .retain(|_, (_, last)| now.saturating_sub(*last) < 2 * RETRY);
        if due.len() > 1 {
            let waiting = waiting.unwrap_or_else(|| claims::waiting(now));
            due.sort_by_cached_key(|slot| {
                let applicant = Applicant {
                    workers: shared::workers_in(oid(slot)).count(),
                    refused: self
                        .refused
                        .get(&oid(slot))
                        .map_or(now, |refused| refused.0),
                    rank: waiting.get(&oid(slot)).map_or(0, |waiting| waiting.rank),
                    started_at: slot.started_at.load(Ordering::Relaxed),
                };
                applicant.order(now)
            });
        }
        let mut next = i64::MAX;
        let (mut waiting, mut unserved) = (0, 0);
        for slot in due {
            let workers = shared::workers_in(oid(slot)).count();
            if self.start(slot, now) {
                self.refused.remove(&oid(slot));
                if self.refused.is_empty() {
                    log::over("slots");
                }
                continue;
            }
            if workers == 0 {
                self.refused.entry(oid(slot)).or_insert((now, now)).1 = now;
            }
            // Workers that still notice are helped only if nobody else needs a worker.
            let long = shared::workers_in(oid(slot)).all(|w| w.long.load(Ordering::Acquire));
            waiting += u32::from(workers == 0 || long);
            unserved += usize::from(workers == 0 || long);
            // If the server has no slot, none of our workers can make room.
            let soon = unserved > 0 && shared::running() >= settings::max_workers();
            next = next.min(now + if soon { RETRY_SOON } else { RETRY });
        }
        shared::control().waiting.store(waiting, Ordering::Relaxed);
        ask_for_room(unserved);
        next
    }

    /// When a database without a worker needs one. This process waits for the writes there: if
    /// the flag is down, it has been woken.
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

    /// Looks once into each database: policies from before this server's start, or in a copied
    /// database, are not announced.
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
        // A database that rejects connections now is looked into again later.
        self.seen.retain(|oid| databases.allowed.contains(oid));
        for slot in &shared::control().databases {
            let oid = slot.oid.load(Ordering::Acquire);
            if oid != 0 && !databases.all.contains(&oid) {
                state::remove_tables(|state| state.key.database == oid);
                shared::free_database(slot);
            }
        }
    }

    /// Frees the slots of workers that ended without doing so: they could not start, or not
    /// connect.
    fn reap(&mut self) {
        self.started.retain(|started| {
            if !started.handle.is_stopped() {
                return true;
            }
            if let Some(worker) = shared::control().workers.get(started.slot) {
                let pid = worker.pid.load(Ordering::Acquire);
                if pid == shared::STARTING || (pid > 0 && !background::is_alive(pid)) {
                    worker.clear_turn();
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
        let free = workers
            .iter()
            .position(|w| w.pid.load(Ordering::Acquire) == 0);
        let Some(place) = free.filter(|_| shared::running() < settings::max_workers()) else {
            return false;
        };
        workers[place]
            .database
            .store(slot.oid.load(Ordering::Relaxed), Ordering::Release);
        workers[place].clear_turn();
        workers[place]
            .pid
            .store(shared::STARTING, Ordering::Release);
        slot.started_at.store(now, Ordering::Relaxed);
        // In case it dies without setting another time.
        slot.due.store(now + AFTER_DEATH, Ordering::Release);
        slot.wants_wake.store(true, Ordering::Release);
        let handle = Registration {
            name: "ttl_ext worker",
            function: process::ENTRY_POINT,
            argument: i32::try_from(place).unwrap_or(0),
            restart: None,
        }
        .start();
        match handle {
            Some(handle) => {
                if slot.lacks_slot.swap(false, Ordering::AcqRel) {
                    shared::control().on_since.store(now, Ordering::Relaxed);
                }
                // Whoever had the slot before has left it.
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
                // Otherwise other workers are there, who delete everything.
                let oid = slot.oid.load(Ordering::Relaxed);
                if shared::workers_in(oid).next().is_none() {
                    slot.lacks_slot.store(true, Ordering::Release);
                }
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

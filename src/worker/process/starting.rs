//! What the launcher starts: schedulers where policies have changed, workers where an owner's rows are due,
//! index builders where an index is wanted.

use super::clients::{Clients, StartOutcome};
use crate::error::Error;
use crate::pg::catalog::databases::Databases;
use crate::pg::server::background::{self, Registration, WorkerHandle};
use crate::pg::session::owner_session::Ownership;
use crate::settings;
use crate::worker::queue::schedule::Writes;
use crate::worker::shared::claims::Client;
use crate::worker::shared::processes::{self, Kind, Process, Task};
use crate::worker::shared::{self, Database};
use crate::worker::shared::{builds, log};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;

/// The shortest time between two starts of a scheduler in one database,
const START_GAP: i64 = 1_000_000;
/// and after one has died.
const AFTER_DEATH: i64 = 5_000_000;

/// A process that has not taken its place after so long never will.
const STARTS_WITHIN: i64 = 60_000_000;

/// Slots are scarce until this time has passed without one lacking: single starts succeed all the while.
const SCARCE_FOR: i64 = 60_000_000;

/// A process that has been started: its place and the postmaster's handle.
struct StartedProcess {
    place: usize,
    task: Task,
    handle: WorkerHandle,
}

/// What has been started, and for whom.
#[derive(Default)]
pub(in crate::worker) struct Starter {
    started: Vec<StartedProcess>,
    clients: Clients,
    /// When a slot was last lacking.
    slot_lacked_at: i64,
}

impl Starter {
    /// Where policies have changed, or were read a naptime ago.
    pub(in crate::worker) fn start_schedulers(&mut self, databases: &Databases, now: i64) -> i64 {
        let (mut next, mut waiting) = (i64::MAX, 0);
        let lag_wanted = settings::max_replica_lag().is_some()
            && processes::running(Kind::Scheduler) == 0
            && shared::control().replica_lag_at.load(Ordering::Relaxed)
                < now - shared::REPLICAS_EVERY;
        let mut measures = lag_wanted
            .then(|| processes::of(Kind::Worker).next())
            .flatten()
            .map(|worker| worker.database.load(Ordering::Relaxed));
        // The one that was served longest ago comes first, so that none waits for ever.
        let mut all: Vec<_> = shared::databases().collect();
        all.sort_by_key(|(_, slot)| slot.started_at.load(Ordering::Relaxed));
        for (database, slot) in all {
            let mut due = match slot.changed.load(Ordering::Acquire) {
                true => i64::MIN,
                false => slot.due.load(Ordering::Acquire),
            };
            if measures == Some(database) {
                due = i64::MIN;
                measures = None;
            }
            let is_there =
                processes::in_database(database).any(|process| process.is(Kind::Scheduler));
            if is_there {
                continue;
            }
            let due = due.max(slot.started_at.load(Ordering::Relaxed) + START_GAP);
            let at = match admits(&databases.allowed, database, slot, now) {
                Ok(()) => due,
                Err(at) => at.max(due),
            };
            if at > now {
                next = next.min(at);
                continue;
            }
            let task = Task {
                kind: Kind::Scheduler,
                client: Client { database, owner: 0 },
                table: 0,
                way: Ownership::Connected,
            };
            match self.start(task, now) {
                StartOutcome::Yes => {
                    slot.started_at.store(now, Ordering::Relaxed);
                    slot.lacks_slot.store(false, Ordering::Release);
                    // In case it dies without setting another time.
                    slot.due.store(now + AFTER_DEATH, Ordering::Release);
                }
                StartOutcome::Crowded => waiting += 1,
                StartOutcome::Soon => {}
                StartOutcome::NoSlot => {
                    slot.lacks_slot.store(true, Ordering::Release);
                    next = next.min(now + START_GAP);
                }
            }
        }
        let control = shared::control();
        control.waiting_databases.store(waiting, Ordering::Relaxed);
        next
    }

    /// Where rows of an owner are due.
    pub(in crate::worker) fn start_workers(
        &mut self,
        databases: &Databases,
        written: &HashMap<usize, Writes>,
        now: i64,
    ) -> Result<i64, Error> {
        let allowed = &databases.allowed;
        let admits = |database| match shared::database(database) {
            Some(slot) => admits(allowed, database, slot, now),
            None => Err(i64::MAX),
        };
        let (mut next, applicants) = self.clients.due(written, now, admits);
        let mut unserved = 0;
        for client in applicants {
            let others = Clients::workers(client).count();
            let Some(outcome) = self.start_worker(client, now)? else {
                continue;
            };
            match outcome {
                StartOutcome::Yes => {
                    self.clients.is_served(client, now);
                    note_slot(client, true);
                }
                outcome => {
                    note_slot(client, outcome != StartOutcome::NoSlot || others > 0);
                    // Workers that still make progress are helped only if no other owner waits.
                    let are_long = Clients::workers(client).all(|it| it.long_turn(now).is_some());
                    unserved += usize::from(others == 0 || are_long);
                    next = next.min(self.clients.is_refused(client, outcome, now));
                }
            }
        }
        let waiting = u32::try_from(unserved).unwrap_or(u32::MAX);
        shared::control().waiting.store(waiting, Ordering::Relaxed);
        ask_for_room(unserved, now);
        Ok(next)
    }

    /// `None`: the owner is gone.
    fn start_worker(&mut self, client: Client, now: i64) -> Result<Option<StartOutcome>, Error> {
        // First: where many owners wait, to look up how each can connect takes longer than all else.
        if is_full(Kind::Worker) {
            return Ok(Some(StartOutcome::Crowded));
        }
        let Some(way) = self.clients.way(client)? else {
            return Ok(None);
        };
        let task = Task {
            kind: Kind::Worker,
            client,
            table: 0,
            way,
        };
        Ok(Some(self.start(task, now)))
    }

    pub(in crate::worker) fn start_builders(
        &mut self,
        databases: &Databases,
        now: i64,
    ) -> Result<i64, Error> {
        if !settings::build_indexes() {
            return Ok(i64::MAX);
        }
        let (mut next, due) = builds::due(now);
        for (client, table) in due {
            let Some(slot) = shared::database(client.database) else {
                continue;
            };
            if let Err(at) = admits(&databases.allowed, client.database, slot, now) {
                next = next.min(at);
                continue;
            }
            let Some(way) = self.clients.way(client)? else {
                continue;
            };
            let task = Task {
                kind: Kind::Builder,
                client,
                table,
                way,
            };
            match self.start(task, now) {
                StartOutcome::Yes => builds::has_begun(task, now),
                StartOutcome::Crowded => builds::ask_for_room(now),
                StartOutcome::Soon => {}
                StartOutcome::NoSlot => builds::lacks_slot(task),
            }
            next = next.min(now + START_GAP);
        }
        Ok(next)
    }

    /// Frees the places of processes that have ended, and notes those that did not come as far as
    /// being connected.
    pub(in crate::worker) fn reap(&mut self) {
        let clients = &mut self.clients;
        self.started.retain(|started| {
            if !started.handle.is_stopped() {
                return true;
            }
            let Some(process) = shared::control().processes.get(started.place) else {
                return false;
            };
            let pid = process.pid.load(Ordering::Acquire);
            if pid == processes::STARTING || (pid > 0 && !background::is_alive(pid)) {
                process.free();
            }
            let connected = process.connected.load(Ordering::Relaxed);
            let client = started.task.client;
            match started.task.kind {
                Kind::Scheduler => {}
                Kind::Worker => {
                    let used = process.used.load(Ordering::Relaxed);
                    clients.has_ended(client, connected, used, background::monotonic());
                }
                Kind::Builder => builds::has_ended(started.task, connected),
            }
            false
        });
        self.free_lost_places(background::monotonic());
    }

    /// Frees the places of processes that a launcher before this one has started, and that have never come or are gone.
    fn free_lost_places(&self, now: i64) {
        for (place, process) in shared::control().processes.iter().enumerate() {
            let began = process.started_at.load(Ordering::Relaxed);
            let is_lost = match process.pid.load(Ordering::Acquire) {
                processes::STARTING => now.saturating_sub(began) > STARTS_WITHIN,
                pid => pid > 0 && !background::is_alive(pid),
            };
            if is_lost && !self.started.iter().any(|started| started.place == place) {
                process.free();
            }
        }
    }

    fn start(&mut self, task: Task, now: i64) -> StartOutcome {
        if is_full(task.kind) {
            return StartOutcome::Crowded;
        }
        let is_free = |(place, process): &(usize, &Process)| {
            process.pid.load(Ordering::Acquire) == 0
                && !self.started.iter().any(|started| started.place == *place)
        };
        let places = shared::control().processes.iter().enumerate();
        let Some((place, process)) = places.into_iter().find(is_free) else {
            return StartOutcome::Crowded;
        };
        process.allot(task, now);
        let handle = Registration {
            name: task.kind.name(),
            function: "ttl_ext_process_main",
            argument: i32::try_from(place).unwrap_or(0),
            restart: None,
        }
        .start();
        let Some(handle) = handle else {
            process.free();
            if self.is_one_ending() {
                return StartOutcome::Soon;
            }
            self.slot_lacked_at = now;
            log::once(
                "slots",
                &format!(
                    "could not start a {}: no slot for a background worker is free",
                    task.kind.name()
                ),
                "Expired rows stay on disk until one is. You may need to raise \"max_worker_processes\".",
            );
            return StartOutcome::NoSlot;
        };
        if now.saturating_sub(self.slot_lacked_at) > SCARCE_FOR {
            log::over("slots");
        }
        self.started.push(StartedProcess {
            place,
            task,
            handle,
        });
        StartOutcome::Yes
    }

    /// Whether a process has given up its place, but not its slot yet.
    fn is_one_ending(&self) -> bool {
        let places = &shared::control().processes;
        let mut started = self.started.iter().filter_map(|it| places.get(it.place));
        started.any(|process| process.pid.load(Ordering::Acquire) == 0)
    }
}

/// Whether there are as many processes of this kind as there may be.
fn is_full(kind: Kind) -> bool {
    processes::running(kind) >= kind.most()
}

/// Whether processes may be in the database; if not, when to ask again.
fn admits(allowed: &HashSet<u32>, oid: u32, slot: &Database, now: i64) -> Result<(), i64> {
    let held = slot.held_until.load(Ordering::Relaxed);
    match allowed.contains(&oid) {
        _ if held > now => Err(held),
        true => Ok(()),
        false => Err(i64::MAX),
    }
}

/// Makes room for this number of owners when all workers are taken: idle workers leave, and those that
/// have been at one table for longest give way.
fn ask_for_room(owners: usize, now: i64) {
    if owners == 0 {
        return;
    }
    let mut long = Vec::new();
    for worker in processes::of(Kind::Worker) {
        if worker.is_idle() {
            background::wake(worker.pid.load(Ordering::Acquire));
        } else if let Some(began) = worker.long_turn(now) {
            long.push((!worker.slow.load(Ordering::Relaxed), began, worker));
        }
    }
    long.sort_by_key(|(honest, began, _)| (*honest, *began));
    for (_, _, worker) in long.into_iter().take(owners) {
        worker.give_way.store(true, Ordering::Relaxed);
    }
}

/// Notes whether the server has a slot for what is due in the database.
fn note_slot(client: Client, has: bool) {
    if let Some(slot) = shared::database(client.database) {
        slot.lacks_slot.store(!has, Ordering::Release);
    }
}

//! The launcher: one process of the server, connected to no database. It takes sessions' writes into
//! the schedule and starts the other processes where something is due: schedulers, which read the
//! policies of a database, and workers and index builders, which belong to an owner.
//!
//! Nothing that an owner can influence runs here: it reads pg_database, pg_authid and shared memory.

use super::claims::{self, Client};
use super::clients::Clients;
use super::marks::AllMarks;
use super::processes::{self, Kind, Process, Task};
use super::shared::{self, Database};
use super::{builds, clock, log, standing, state};
use crate::deletion::transaction;
use crate::error::Error;
use crate::pg::background::{self, Handle, Registration};
use crate::pg::databases::{self, Databases};
use crate::pg::owner_session::Way;
use crate::pg::{activity, session};
use crate::settings;
use core::ffi::c_int;
use pgrx::prelude::*;
use std::collections::HashSet;
use std::sync::atomic::Ordering;

/// The shortest time between two starts of a scheduler in one database,
const START_GAP: i64 = 1_000_000;
/// and after one has died.
const AFTER_DEATH: i64 = 5_000_000;
/// The longest sleep: the clocks are compared that often.
const LONGEST_SLEEP: i64 = 2_000_000;
/// pg_database is read no more often than this.
const DATABASES_EVERY: i64 = 1_000_000;
/// While users write, commits do not wake the launcher more often than this, in milliseconds.
const BETWEEN_WRITES: i64 = 10;
/// A round takes at most this fraction of the time.
const SHARE: i64 = 10;

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
    let control = shared::control();
    control
        .launcher
        .store(background::my_pid(), Ordering::Release);
    control
        .launcher_latch
        .store(background::my_latch(), Ordering::Release);
    let offset = background::wall_offset();
    control.wall_offset.store(offset, Ordering::Relaxed);
    log::debug("ttl_ext launcher started");
    if standing::is_recovered() {
        let timeline = background::timeline();
        log::warning(
            &format!(
                "no expired row is deleted in the background, since the server is on timeline {timeline}, and \"ttl.timeline\" is {}",
                settings::timeline()
            ),
            &format!(
                "The server has recovered since it was set. Once its data is what it should be, set \"ttl.timeline\" to {timeline}."
            ),
        );
    }
    let mut launcher = Launcher::default();
    loop {
        if session::reload_if_asked() {
            log::debug("ttl_ext launcher reloaded its configuration");
        }
        let began = background::monotonic();
        let (due, fresh) = match launcher.round() {
            Ok(round) => round,
            Err(failure) => failure.raise_fatal(),
        };
        activity::idle();
        let took = background::monotonic().saturating_sub(began);
        let sleep = (due - background::monotonic()).clamp(1_000, LONGEST_SLEEP);
        if fresh {
            // So that continuous writes do not wake it at each commit.
            let between = BETWEEN_WRITES.max(took.saturating_mul(SHARE) / 1000);
            background::wait(between.min(sleep / 1000));
            continue;
        }
        shared::databases().for_each(|(_, slot)| slot.wants_wake.store(true, Ordering::SeqCst));
        // A session may have written before the flag was set.
        if !launcher.is_on || !launcher.marks.are_behind() {
            background::wait(sleep / 1000);
        }
    }
}

extern "C-unwind" fn forget_launcher(_code: c_int, _arg: pg_sys::Datum) {
    shared::control().launcher.store(0, Ordering::Release);
    shared::control().launcher_latch.store(0, Ordering::Release);
}

/// A process that this launcher has started: its place and the postmaster's handle.
struct Started {
    place: usize,
    task: Task,
    handle: Handle,
}

#[derive(Default)]
pub(super) struct Launcher {
    /// Databases that a scheduler has been sent to.
    seen: HashSet<u32>,
    databases: Databases,
    databases_read_at: i64,
    started: Vec<Started>,
    marks: AllMarks,
    clients: Clients,
    /// Whether deletion was on in the last round.
    is_on: bool,
}

impl Launcher {
    /// Starts processes where something is due. Returns when to do so again, and whether users have
    /// just written what expires soon.
    fn round(&mut self) -> Result<(i64, bool), Error> {
        self.reap();
        let now = background::monotonic();
        end_overdue(now);
        if !standing::is_on() {
            self.is_on = false;
            return Ok((i64::MAX, false));
        }
        if !std::mem::replace(&mut self.is_on, true) {
            shared::control().on_since.store(now, Ordering::Relaxed);
        }
        heed_clock(now);
        self.read_databases(now)?;
        let fresh = self.marks.take(now);
        let mut next = self.start_schedulers(now);
        next = next.min(self.start_workers(now)?);
        next = next.min(self.start_builders(now)?);
        Ok((next, fresh))
    }

    fn read_databases(&mut self, now: i64) -> Result<(), Error> {
        let read_at = self.databases_read_at;
        // A statement on a database is over.
        let changed = shared::databases().any(|(_, slot)| {
            let held = slot.held_until.load(Ordering::Relaxed);
            held > read_at && held <= now
        });
        if read_at != 0 && now - read_at < DATABASES_EVERY && !changed {
            return Ok(());
        }
        self.databases = transaction::run(|| Ok(databases::connectable()))?;
        self.databases_read_at = now;
        self.look_at_new();
        self.forget_dropped();
        Ok(())
    }

    /// Sends a scheduler once into each database: policies from before this server's start, or in a
    /// copied database, are not announced.
    fn look_at_new(&mut self) {
        for &oid in &self.databases.allowed {
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

    fn forget_dropped(&mut self) {
        let Databases { all, allowed } = &self.databases;
        // A database that rejects connections now is visited again later.
        self.seen.retain(|oid| allowed.contains(oid));
        for (oid, slot) in shared::databases() {
            if !all.contains(&oid) {
                state::remove_tables(|state| state.key.database == oid);
                shared::free_database(slot);
            }
        }
        self.marks.retain(|oid| all.contains(&oid));
    }

    /// Where policies have changed, or were read a naptime ago.
    fn start_schedulers(&mut self, now: i64) -> i64 {
        let (mut next, mut waiting) = (i64::MAX, 0);
        let lag_wanted = settings::max_replica_lag().is_some()
            && processes::running(Kind::Scheduler) == 0
            && shared::control().replica_lag_at.load(Ordering::Relaxed)
                < now - super::scheduler::REPLICAS_EVERY;
        let mut measures = lag_wanted
            .then(|| processes::of(Kind::Worker).next())
            .flatten()
            .map(|worker| worker.database.load(Ordering::Relaxed));
        for (database, slot) in shared::databases() {
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
            let at = match admits(&self.databases.allowed, database, slot, now) {
                Ok(()) => due,
                Err(at) => at.max(due),
            };
            if at > now {
                next = next.min(at);
                continue;
            }
            let task = Task {
                kind: Kind::Scheduler,
                database,
                owner: 0,
                table: 0,
                way: Way::Connected,
            };
            match self.start(task, now) {
                Outcome::Yes => {
                    slot.started_at.store(now, Ordering::Relaxed);
                    slot.lacks_slot.store(false, Ordering::Release);
                    // In case it dies without setting another time.
                    slot.due.store(now + AFTER_DEATH, Ordering::Release);
                }
                Outcome::Crowded => waiting += 1,
                Outcome::Soon => {}
                Outcome::NoSlot => {
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
    fn start_workers(&mut self, now: i64) -> Result<i64, Error> {
        let allowed = &self.databases.allowed;
        let admits = |database| match shared::database(database) {
            Some(slot) => admits(allowed, database, slot, now),
            None => Err(i64::MAX),
        };
        let (mut next, applicants) = self.clients.due(now, admits);
        let mut unserved = 0;
        // What keeps one of them from a worker keeps those behind from one, too.
        let mut hindrance = None;
        for client in applicants {
            let others = Clients::workers(client).count();
            let outcome = match hindrance {
                Some(outcome) => outcome,
                None => match self.start_worker(client, now)? {
                    Some(outcome) => outcome,
                    None => continue,
                },
            };
            if outcome == Outcome::Yes {
                self.clients.is_served(client, now);
                note_slot(client, true);
                continue;
            }
            hindrance = Some(outcome);
            note_slot(client, outcome != Outcome::NoSlot || others > 0);
            let long = Clients::workers(client).all(|it| it.long.load(Ordering::Acquire));
            // Workers that still make progress are helped only if no other owner waits.
            unserved += usize::from(others == 0 || long);
            next = next.min(self.clients.is_refused(client, outcome, now));
        }
        let waiting = u32::try_from(unserved).unwrap_or(u32::MAX);
        shared::control().waiting.store(waiting, Ordering::Relaxed);
        ask_for_room(unserved);
        Ok(next)
    }

    /// `None`: the owner is gone.
    fn start_worker(&mut self, client: Client, now: i64) -> Result<Option<Outcome>, Error> {
        let Some(way) = self.clients.way(client)? else {
            return Ok(None);
        };
        let task = Task {
            kind: Kind::Worker,
            database: client.database,
            owner: client.owner,
            table: 0,
            way,
        };
        Ok(Some(self.start(task, now)))
    }

    fn start_builders(&mut self, now: i64) -> Result<i64, Error> {
        if !settings::build_indexes() {
            return Ok(i64::MAX);
        }
        let (mut next, due) = builds::due(now);
        for (client, table) in due {
            let Some(slot) = shared::database(client.database) else {
                continue;
            };
            if let Err(at) = admits(&self.databases.allowed, client.database, slot, now) {
                next = next.min(at);
                continue;
            }
            let Some(way) = self.clients.way(client)? else {
                continue;
            };
            let task = Task {
                kind: Kind::Builder,
                database: client.database,
                owner: client.owner,
                table,
                way,
            };
            match self.start(task, now) {
                Outcome::Yes => builds::has_begun(task, now),
                Outcome::Crowded => builds::ask_for_room(now),
                Outcome::Soon => {}
                Outcome::NoSlot => builds::lacks_slot(task),
            }
            next = next.min(now + START_GAP);
        }
        Ok(next)
    }

    /// Frees the places of processes that have ended, and notes those that did not come as far as
    /// being connected.
    fn reap(&mut self) {
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
            let client = Client {
                database: started.task.database,
                owner: started.task.owner,
            };
            match started.task.kind {
                Kind::Scheduler => {}
                Kind::Worker => clients.has_ended(client, connected, background::monotonic()),
                Kind::Builder => builds::has_ended(started.task, connected),
            }
            false
        });
    }

    fn start(&mut self, task: Task, now: i64) -> Outcome {
        if processes::running(task.kind) >= task.kind.most() {
            return Outcome::Crowded;
        }
        let is_free = |(place, process): &(usize, &Process)| {
            process.pid.load(Ordering::Acquire) == 0
                && !self.started.iter().any(|started| started.place == *place)
        };
        let places = shared::control().processes.iter().enumerate();
        let Some((place, process)) = places.into_iter().find(is_free) else {
            return Outcome::Crowded;
        };
        process.allot(task, now);
        let handle = Registration {
            name: task.kind.name(),
            function: task.kind.entry_point(),
            argument: i32::try_from(place).unwrap_or(0),
            restart: None,
        }
        .start();
        let Some(handle) = handle else {
            process.free();
            if self.is_one_ending() {
                return Outcome::Soon;
            }
            log::once(
                "slots",
                &format!(
                    "could not start a {}: no slot for a background worker is free",
                    task.kind.name()
                ),
                "Expired rows stay on disk until one is. You may need to raise \"max_worker_processes\".",
            );
            return Outcome::NoSlot;
        };
        log::over("slots");
        self.started.push(Started {
            place,
            task,
            handle,
        });
        Outcome::Yes
    }

    /// Whether a process has given up its place, but not its slot yet.
    fn is_one_ending(&self) -> bool {
        let places = &shared::control().processes;
        let mut started = self.started.iter().filter_map(|it| places.get(it.place));
        started.any(|process| process.pid.load(Ordering::Acquire) == 0)
    }
}

/// What came of an attempt to start a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Yes,
    /// There are as many as there may be.
    Crowded,
    /// The server has no slot until one of the extension's own processes has ended, of which the
    /// postmaster tells.
    Soon,
    /// The server has no slot.
    NoSlot,
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

/// So many owners wait, and all workers are taken: those that are idle leave; those at one table for
/// longest make room.
fn ask_for_room(owners: usize) {
    if owners == 0 {
        return;
    }
    let mut long = Vec::new();
    for worker in processes::of(Kind::Worker) {
        let pid = worker.pid.load(Ordering::Acquire);
        let began = worker.turn.load(Ordering::Acquire);
        if pid > 0 && began == 0 {
            background::wake(pid);
        } else if pid > 0 && worker.long.load(Ordering::Acquire) {
            long.push((!worker.slow.load(Ordering::Relaxed), began, worker));
        }
    }
    long.sort_by_key(|(honest, began, _)| (*honest, *began));
    for (_, _, worker) in long.into_iter().take(owners) {
        worker.give_way.store(true, Ordering::Relaxed);
    }
}

/// Ends processes whose transaction has taken longer than it may: SIGTERM cannot be caught by what
/// runs in them, as a cancellation can.
fn end_overdue(now: i64) {
    for process in &shared::control().processes {
        let deadline = process.deadline.load(Ordering::Relaxed);
        if deadline != 0 && deadline < now {
            background::terminate(process.pid.load(Ordering::Acquire));
        }
    }
}

/// Holds deletion if the wall clock was set by more than a minute; scans all tables anew if it moved
/// at all.
fn heed_clock(now: i64) {
    let control = shared::control();
    let offset = background::wall_offset();
    let before = control.wall_offset.load(Ordering::Relaxed);
    if clock::has_jumped(before, offset) {
        let until = now.saturating_add(settings::change_delay());
        control.deletion_held_until.store(until, Ordering::Relaxed);
        log::warning(
            &format!(
                "the system clock was set by {} seconds: deletion of expired rows is held for {} seconds",
                offset.saturating_sub(before) / 1_000_000,
                settings::change_delay() / 1_000_000
            ),
            "Rows that have expired by the new time stay hidden. If it is wrong, set the clock right before deletion goes on; see \"ttl.change_delay\".",
        );
    }
    // After the hold is in place, so that no worker sees neither.
    control.wall_offset.store(offset, Ordering::Relaxed);
    if clock::has_moved(before, offset) {
        claims::scan_all();
    }
}

/// Notes whether the server has a slot for what is due in the database.
fn note_slot(client: Client, has: bool) {
    if let Some(slot) = shared::database(client.database) {
        slot.lacks_slot.store(!has, Ordering::Release);
    }
}

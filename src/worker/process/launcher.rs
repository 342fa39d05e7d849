//! The launcher: one process of the server, connected to no database. It takes sessions' writes into
//! the schedule and starts the other processes where something is due: schedulers, which read the
//! policies of a database, and workers and index builders, which belong to an owner.
//!
//! Nothing that an owner can influence runs here: it reads pg_database, pg_authid and shared memory.

use super::starting::Starter;
use crate::deletion::worker_transaction;
use crate::error::Error;
use crate::pg::catalog::databases::{self, Databases};
use crate::pg::server::activity;
use crate::pg::server::background::{self, Registration};
use crate::pg::session;
use crate::settings;
use crate::worker::queue::clock;
use crate::worker::shared;
use crate::worker::shared::claims;
use crate::worker::shared::wakeups::Marks;
use crate::worker::shared::{deletion_state, log, state, stored_clock};
use core::ffi::c_int;
use pgrx::prelude::*;
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The longest sleep: the clocks are compared that often.
const LONGEST_SLEEP: i64 = 2_000_000;
/// pg_database is read no more often than this.
const DATABASES_EVERY: i64 = 1_000_000;
/// While users write, the launcher looks this often what they have written, in milliseconds, and commits do not wake it. No
/// row that is written expires sooner than in a second.
const BETWEEN_WRITES: i64 = 100;
/// A round takes at most this fraction of the time.
const SHARE: i64 = 10;

/// Registers the launcher with the postmaster; while libraries are preloaded.
pub(in crate::worker) fn register() {
    Registration {
        name: "ttl_ext launcher",
        function: "ttl_ext_launcher_main",
        argument: 0,
        restart: Some(Duration::from_secs(1)),
    }
    .register_static();
}

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
    log::debug("ttl_ext launcher started");
    if deletion_state::is_recovered() {
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
        stored_clock::store_now_and_then();
        activity::idle();
        let took = background::monotonic().saturating_sub(began);
        let sleep = (due - background::monotonic()).clamp(1_000, LONGEST_SLEEP);
        if fresh {
            // So that continuous writes do not wake it at each commit.
            let between = BETWEEN_WRITES.max(took.saturating_mul(SHARE) / 1000);
            background::wait(between.min(sleep / 1000));
            continue;
        }
        // While it is off, writes are none of its business.
        let is_on = launcher.is_on;
        control.wants_wake.store(is_on, Ordering::SeqCst);
        // A session may have written before the flag was set.
        if !launcher.is_on || !launcher.marks.are_behind() {
            background::wait(sleep / 1000);
        }
    }
}

extern "C-unwind" fn forget_launcher(_code: c_int, _arg: pg_sys::Datum) {
    shared::control().launcher.store(0, Ordering::Release);
}

#[derive(Default)]
pub(in crate::worker) struct Launcher {
    /// Databases that a scheduler has been sent to.
    seen: HashSet<u32>,
    databases: Databases,
    databases_read_at: i64,
    starter: Starter,
    marks: Marks,
    /// Whether deletion was on in the last round.
    is_on: bool,
}

impl Launcher {
    /// Starts processes where something is due. Returns when to do so again, and whether users have
    /// just written what expires soon.
    fn round(&mut self) -> Result<(i64, bool), Error> {
        self.starter.reap();
        let now = background::monotonic();
        end_overdue(now);
        if !deletion_state::is_on() {
            self.is_on = false;
            return Ok((i64::MAX, false));
        }
        if !std::mem::replace(&mut self.is_on, true) {
            shared::control().on_since.store(now, Ordering::Relaxed);
        }
        heed_clock(now);
        self.read_databases(now)?;
        let (starter, databases) = (&mut self.starter, &self.databases);
        let mut next = starter.start_schedulers(databases, now);
        let (written, fresh) = self.marks.take();
        next = next.min(starter.start_workers(databases, &written, now)?);
        next = next.min(starter.start_builders(databases, now)?);
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
        self.databases = worker_transaction::run(|| Ok(databases::connectable()))?;
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

//! A worker: deletes the expired rows of one owner's tables in one database, table by table, as this
//! owner, and ends when nothing is due.

pub(in crate::worker) mod clients;
pub(in crate::worker) mod launcher;
pub(in crate::worker) mod scheduler;
pub(in crate::worker) mod starting;
pub(in crate::worker) mod tables;

use super::shared::{self, Database};
use crate::deletion::worker_transaction;
use crate::error::Error;
use crate::pg::catalog;
use crate::pg::server::{activity, background, timeout};
use crate::pg::session;
use crate::settings;
use crate::worker::builder;
use crate::worker::queue::fairness::LONG_TURN;
use crate::worker::shared::claims;
use crate::worker::shared::deletion_state;
use crate::worker::shared::processes::{self, Kind, Process};
use crate::worker::shared::state::TableKey;
use crate::worker::sweep::pace::Pace;
use crate::worker::sweep::turn;
use core::ffi::c_int;
use pgrx::prelude::*;
use std::sync::atomic::Ordering;

/// A worker leaves if nothing has been due for this time, or will be within it.
const LINGER: i64 = 1_500_000;
/// After this time a worker makes room if another owner waits for one;
const SHARE: i64 = 3_000_000;
/// after this time, if the other workers are at slow tables.
const SMALL_SHARE: i64 = 1_000_000;

/// The entry point of all processes but the launcher; `place` is its index in shared memory.
#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ttl_ext_process_main(place: pg_sys::Datum) {
    background::handle_signals();
    let Some(process) = processes::take(place.value()) else {
        return;
    };
    background::before_exit(leave_place);
    let result = if process.is(Kind::Scheduler) {
        scheduler::run(process)
    } else if process.is(Kind::Builder) {
        builder::run(process);
        Ok(())
    } else {
        run(process)
    };
    match result {
        Ok(()) => background::exit(),
        Err(failure) => failure.raise_fatal(),
    }
}

extern "C-unwind" fn leave_place(_code: c_int, _arg: pg_sys::Datum) {
    if let Some(own) = processes::own() {
        let database = own.database.load(Ordering::Relaxed);
        let is_held = || shared::database(database).is_some_and(Database::is_held);
        if own.is(Kind::Worker) && is_held() {
            // It ended in the middle of a turn by design: nothing is wrong with the table.
            claims::release();
        }
        let has_built = own.is(Kind::Builder);
        own.free();
        if has_built {
            // What is left to do is to be looked up.
            shared::allot_database(database);
        }
    }
    shared::wake_launcher();
}

/// A worker's state from one round to the next.
struct WorkerState {
    pace: Pace,
    began: i64,
    /// When it last had something to do.
    busy_at: i64,
    /// Tables opened since it last forgot what it has cached.
    opened: usize,
}

fn run(own: &Process) -> Result<(), Error> {
    own.connect();
    timeout::init(timeout::TimeoutCallbacks {
        is_asked_for_room: processes::is_asked_for_room,
        has_deadline: processes::set_deadline,
    });
    let now = background::monotonic();
    let mut work = WorkerState {
        pace: Pace::new(),
        began: now,
        busy_at: now,
        opened: 0,
    };
    let database = own.database.load(Ordering::Acquire);
    let owner = own.owner.load(Ordering::Acquire);
    loop {
        session::reload_if_asked();
        let Some(slot) = shared::database(database) else {
            return Ok(());
        };
        let now = background::monotonic();
        if !deletion_state::is_on() || slot.is_held() || work.is_over_share(now) {
            return Ok(());
        }
        let next = claims::due_tables(database, owner, settings::naptime(), now);
        if !next.tables.is_empty() {
            work.turns_at(slot, &next.tables);
            work.busy_at = background::monotonic();
            work.limit_caches()?;
            continue;
        }
        let idle_until = work.busy_at.saturating_add(LINGER);
        let due = next.first_due.min(idle_until);
        if is_crowded() || now >= idle_until || next.first_due.saturating_sub(now) > LINGER * 2 {
            return Ok(());
        }
        activity::idle();
        // The launcher wakes it if its owner's tables become due earlier.
        background::wait(((due - now) / 1000).clamp(1, LINGER / 1000));
    }
}

/// Whether an owner waits for a free worker.
fn is_crowded() -> bool {
    shared::control().waiting.load(Ordering::Relaxed) > 0
}

impl WorkerState {
    fn is_over_share(&self, now: i64) -> bool {
        let share = || match processes::others_in_slow_turns() {
            0 => SHARE,
            _ => SMALL_SHARE,
        };
        is_crowded() && now - self.began > share()
    }

    /// Has a turn at each table, unless something intervenes.
    fn turns_at(&mut self, slot: &Database, tables: &[TableKey]) {
        let began = background::monotonic();
        for &key in tables {
            let now = background::monotonic();
            if session::is_reload_asked() || slot.is_held() || self.is_over_share(now) {
                break;
            }
            self.opened += usize::from(turn::turn(key, &mut self.pace));
            // What is due at the others meanwhile does not wait for all of these.
            if background::monotonic() - began > LONG_TURN {
                break;
            }
        }
    }

    /// Keeps the session's memory from growing with the number of tables.
    fn limit_caches(&mut self) -> Result<(), Error> {
        if self.opened < tables::CACHED_TABLES {
            return Ok(());
        }
        self.opened = 0;
        worker_transaction::run(|| {
            catalog::forget_caches();
            Ok(())
        })
    }
}

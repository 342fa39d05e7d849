//! A worker: deletes expired rows in one database, table by table.

use super::claims::{self, Next};
use super::fairness::{Backlog, LONG_TURN};
use super::pace::Pace;
use super::shared::{self, Database, Worker};
use super::tables::{self, CACHED_TABLES, Targets};
use super::{log, turn};
use crate::deletion::transaction;
use crate::error::Error;
use crate::pg::{activity, background, catalog, session, timeout};
use crate::settings;
use core::ffi::c_int;
use pgrx::prelude::*;
use std::sync::atomic::Ordering;

/// A worker leaves if nothing is due within this time.
const LINGER: i64 = 5_000_000;
/// After this time a worker makes room if another database waits for one;
const SHARE: i64 = 3_000_000;
/// after this time, if the other workers are at tables of slow owners.
const SMALL_SHARE: i64 = 1_000_000;

/// The time until a database is looked at again whose worker died in a turn.
const AFTER_TURN: i64 = 500_000;

/// The shortest time between two looks for writes, in milliseconds.
const BETWEEN_WRITES: i64 = 10;

/// Its name, for the postmaster.
pub(super) const ENTRY_POINT: &str = "ttl_ext_worker_main";

/// The entry point of a worker; `slot` is its index in shared memory.
#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn ttl_ext_worker_main(slot: pg_sys::Datum) {
    let Some(worker) = shared::control().workers.get(slot.value()) else {
        return;
    };
    background::handle_signals();
    let database = worker.database.load(Ordering::Acquire);
    if database == 0 {
        return;
    }
    shared::take_place(slot.value());
    worker.report.clear();
    worker.pid.store(background::my_pid(), Ordering::Release);
    background::before_exit(leave_slot);
    background::connect(Some(database.into()));
    prepare_session();
    timeout::init(timeout::Calls {
        is_long: shared::tell_long_turn,
        is_asked_for_room: shared::is_asked_for_room,
    });
    log::debug(&format!(
        "ttl_ext worker started in database with OID {database}"
    ));
    match work(database) {
        Ok(()) => {}
        Err(failure) => failure.raise_fatal(),
    }
    log::debug(&format!(
        "ttl_ext worker leaves database with OID {database}"
    ));
    background::exit();
}

extern "C-unwind" fn leave_slot(_code: c_int, _arg: pg_sys::Datum) {
    let me = background::my_pid();
    let database = background::my_database().to_u32();
    if let Some(slot) = shared::database(database)
        && is_held(slot)
    {
        // It ended in the middle of a turn by design: nothing is wrong with the table.
        claims::release_claims();
    }
    let slot = |worker: &&Worker| worker.pid.load(Ordering::Relaxed) == me;
    if let Some(worker) = shared::control().workers.iter().find(slot) {
        if worker.turn.load(Ordering::Relaxed) != 0
            && let Some(slot) = shared::database(database)
        {
            // By the table that it was at, which waits now: not by others in the database.
            slot.due
                .store(background::now() + AFTER_TURN, Ordering::Release);
        }
        worker.clear_turn();
        worker.database.store(0, Ordering::Relaxed);
        worker.pid.store(0, Ordering::Release);
    }
}

/// This session does not use the settings that the configuration, the database or the role has
/// for clients.
fn prepare_session() {
    for (name, value) in [
        // Deletions lost in a crash are repeated.
        ("synchronous_commit", "off"),
        ("default_transaction_isolation", "read committed"),
        ("default_transaction_read_only", "off"),
        ("default_transaction_deferrable", "off"),
        ("role", "none"),
        ("exit_on_error", "off"),
        ("session_replication_role", "origin"),
        ("row_security", "on"),
        ("statement_timeout", "0"),
        ("idle_in_transaction_session_timeout", "0"),
        #[cfg(since17)]
        ("transaction_timeout", "0"),
        // Rows are deleted while a query runs: in one process, in order, and by the access paths
        // that batches are made for.
        ("max_parallel_workers_per_gather", "0"),
        ("synchronize_seqscans", "off"),
        ("enable_tidscan", "on"),
        ("enable_indexscan", "on"),
        ("enable_bitmapscan", "on"),
        // A DELETE by a list of TIDs reads those rows, not the whole table.
        ("random_page_cost", "0.1"),
        ("jit", "off"),
        ("ttl.show_expired", "off"),
        ("ttl.preserve_ts", "off"),
    ] {
        session::force(name, value);
    }
    follow_settings();
}

/// What depends on settings, which may be reloaded.
fn follow_settings() {
    session::force("lock_timeout", &settings::lock_timeout_ms().to_string());
}

/// A worker's state from one round to the next.
struct Work {
    pace: Pace,
    targets: Option<(Targets, i64)>,
    /// The count of policy changes when this worker last loaded the policies.
    changes: Option<u32>,
    /// The count of writes when this worker last looked for them,
    seen: Option<u32>,
    /// and the count of urgent ones.
    urgent: Option<u32>,
    began: i64,
    /// Turns that it has had.
    turns: u64,
    /// Tables opened since it last forgot what it has cached.
    opened: usize,
    backlog: Backlog,
}

fn work(database: u32) -> Result<(), Error> {
    let mut work = Work {
        pace: Pace::new(),
        targets: None,
        changes: None,
        seen: None,
        urgent: None,
        began: background::now(),
        turns: 0,
        opened: 0,
        backlog: Backlog::default(),
    };
    loop {
        if session::reload_if_asked() {
            follow_settings();
        }
        let Some(slot) = shared::database(database) else {
            return Ok(());
        };
        let now = background::now();
        if !settings::enabled() || is_held(slot) {
            return Ok(());
        }
        if work.is_over_share(now) {
            return leave(slot, now);
        }
        if !work.load(slot, now)? {
            give_up(slot, now);
            return Ok(());
        }
        let (urgent, fresh) = work.take_writes(slot, now);
        let next = claims::claim_next(database, settings::naptime(), now);
        slot.due_tables.store(next.due, Ordering::Relaxed);
        work.tell_of_backlog(database, next.due, now);
        let crowded = is_crowded();
        if !next.claimed.is_empty() {
            if crowded && next.only_slow && work.turns > 0 {
                claims::release_claims();
                return leave(slot, now);
            }
            work.turns_at(slot, next);
            work.limit_caches()?;
            continue;
        }
        let due = next.first_due.min(now.saturating_add(settings::naptime()));
        let timeout = ((due - now) / 1000).clamp(1, 60_000);
        if fresh && !crowded {
            // So that continuous writes do not wake it at each commit.
            background::wait(timeout.min(BETWEEN_WRITES));
            continue;
        }
        let leaves = due - now > LINGER || crowded;
        if leaves {
            slot.due.store(due, Ordering::Release);
        }
        // Unless another session has just written or changed something.
        slot.wants_wake.store(true, Ordering::SeqCst);
        if slot.changed.load(Ordering::SeqCst) || slot.urgent.load(Ordering::SeqCst) != urgent {
            slot.wants_wake.store(false, Ordering::SeqCst);
            continue;
        }
        if leaves {
            return Ok(());
        }
        activity::idle();
        background::wait(timeout);
    }
}

/// Whether a database waits for a free worker.
fn is_crowded() -> bool {
    shared::control().waiting.load(Ordering::Relaxed) > 0
}

/// Leaves a database where something is due.
fn leave(slot: &Database, now: i64) -> Result<(), Error> {
    slot.due.store(now, Ordering::Release);
    Ok(())
}

impl Work {
    fn is_over_share(&self, now: i64) -> bool {
        let share = || match shared::others_in_slow_turns() {
            0 => SHARE,
            _ => SMALL_SHARE,
        };
        is_crowded() && now - self.began > share()
    }

    /// The launcher, which sleeps while workers are at work, may start another one.
    fn tell_of_backlog(&mut self, database: u32, due_tables: u32, now: i64) {
        let workers = shared::workers_in(database).count();
        if self
            .backlog
            .is_to_be_told(due_tables as usize, workers, now)
            && shared::running() < settings::max_workers()
        {
            shared::wake_launcher();
        }
    }

    /// Reads the policies if they have changed or were read long ago; false if there are none.
    fn load(&mut self, slot: &Database, now: i64) -> Result<bool, Error> {
        let targets = self.targets.as_ref();
        let stale = targets.is_none_or(|(_, loaded)| now - loaded >= settings::naptime());
        // Another worker here may have noticed first.
        let changed = slot.changed.swap(false, Ordering::AcqRel);
        let changes = slot.changes.load(Ordering::Acquire);
        let is_told = self.changes.replace(changes) != Some(changes) || changed;
        if is_told || stale {
            self.targets = tables::load(is_told)?.map(|loaded| (loaded, now));
        }
        Ok(self.targets.is_some())
    }

    /// Takes writes into the schedule; returns the count of urgent writes so far, and whether
    /// there were any urgent ones since the last call.
    fn take_writes(&mut self, slot: &Database, now: i64) -> (u32, bool) {
        // The urgent ones first: who writes counts them last, so that none is taken for seen
        // whose mark is not.
        let urgent = slot.urgent.load(Ordering::SeqCst);
        let writes = slot.writes.load(Ordering::SeqCst);
        if let Some((targets, _)) = &self.targets
            && self.seen.replace(writes) != Some(writes)
        {
            tables::take_writes(targets, now);
        }
        slot.urgent_taken.store(urgent, Ordering::SeqCst);
        let before = self.urgent.replace(urgent);
        (urgent, before.is_some_and(|before| before != urgent))
    }

    /// Has a turn at each claimed table, unless something intervenes.
    fn turns_at(&mut self, slot: &Database, next: Next) {
        for key in next.claimed {
            let now = background::now();
            let changed = slot.changed.load(Ordering::Acquire);
            if session::is_reload_asked() || is_held(slot) || self.is_over_share(now) || changed {
                break;
            }
            let targets = self.targets.as_ref();
            let known = targets.and_then(|(targets, _)| targets.get(key.relid));
            self.opened += usize::from(turn::turn(key, known, &mut self.pace));
            self.turns += 1;
            // Nobody else waits behind the earlier claims.
            if i128::from(background::now() - now) > LONG_TURN.as_micros().cast_signed() {
                break;
            }
        }
        claims::release_claims();
    }

    /// Keeps the session's memory from growing with the number of tables.
    fn limit_caches(&mut self) -> Result<(), Error> {
        if self.opened < CACHED_TABLES {
            return Ok(());
        }
        self.opened = 0;
        transaction::run(|| {
            catalog::forget_caches();
            Ok(())
        })
    }
}

/// Whether a statement needs the database without connections.
fn is_held(slot: &Database) -> bool {
    slot.held_until.load(Ordering::Relaxed) > background::now()
}

/// No table has a policy here: frees the database's slot, unless a prepared transaction may
/// bring one.
fn give_up(slot: &Database, now: i64) {
    if slot.keep.load(Ordering::Relaxed) {
        slot.due.store(now + settings::naptime(), Ordering::Release);
    } else {
        shared::free_unchanged(slot);
    }
}

//! The scheduler of a database reads the policies from the labels into shared memory when one has changed, and leaves.
//! It also reads them once in each naptime, unless no catalog was written to since the last time.
//!
//! It is connected as the bootstrap superuser, since it reads all labels, and therefore runs nothing
//! that an owner can influence: no expression, predicate, trigger, cast, and no query on a table of
//! anyone (`docs/security.md`). Deletion goes on meanwhile in the owners' own processes.

use super::tables::{self, Reading};
use crate::deletion::worker_transaction;
use crate::error::Error;
use crate::pg::server::{activity, background};
use crate::pg::session;
use crate::settings;
use crate::worker::shared::deletion_state;
use crate::worker::shared::processes::{self, Kind, Process};
use crate::worker::shared::{self, REPLICAS_EVERY};
use pgrx::prelude::*;
use std::sync::atomic::Ordering;

/// It leaves if no policy has changed for this time.
const LINGER: i64 = 2_000_000;
/// The policies of a database where they change all the time are read for at most this fraction of
/// the time, in pauses of at most a second.
const SHARE: i64 = 4;
const LONGEST_PAUSE: i64 = 1_000_000;

pub(in crate::worker) fn run(process: &Process) -> Result<(), Error> {
    let database = process.database.load(Ordering::Acquire);
    background::connect(Some(database.into()));
    process.connected.store(true, Ordering::Release);
    processes::prepare_session();
    session::force("stats_fetch_consistency", "cache");
    tables::init();
    let began = background::monotonic();
    let mut last_change = began;
    let mut read_at = None;
    let mut again = false;
    let mut replicas = Replicas::default();
    loop {
        session::reload_if_asked();
        let Some(slot) = shared::database(database) else {
            return Ok(());
        };
        if !deletion_state::is_on() || slot.is_held() {
            return Ok(());
        }
        let now = background::monotonic();
        let changed = slot.changed.swap(false, Ordering::AcqRel);
        let is_due = read_at.is_none_or(|at| now - at >= settings::naptime());
        if changed || again || is_due {
            let reading = if is_due {
                Reading::All
            } else {
                Reading::Changed
            };
            // Nothing is known until the end of this reading: it can fail.
            let known = slot.catalogs.swap(0, Ordering::AcqRel);
            // Asked for before: what is written meanwhile counts as new.
            let writes = tables::catalog_writes()?.unwrap_or(0);
            let is_known = writes != 0 && writes == known && !changed && !again;
            let is_settled = if is_known {
                true
            } else if let Some(is_settled) = tables::load(reading)? {
                // After a change they are read once more, by another process if this one ends.
                is_settled && !changed
            } else {
                shared::free_unchanged(slot);
                return Ok(());
            };
            if is_settled {
                slot.catalogs.store(writes, Ordering::Release);
            }
            let end = background::monotonic();
            if is_due {
                read_at = Some(end);
            }
            let is_behind = slot.changed.load(Ordering::Acquire);
            slot.changed_since
                .store(if is_behind { end } else { 0 }, Ordering::Release);
            // The invalidations of a change come after its announcement.
            again = changed;
            if changed {
                last_change = end;
            }
            slot.due
                .store(end.saturating_add(settings::naptime()), Ordering::Release);
            shared::wake_launcher();
            let pause = (end - now).saturating_mul(SHARE).min(LONGEST_PAUSE);
            sleep(pause);
            if background::monotonic() - began < LINGER || !do_others_wait() {
                continue;
            }
            // Whoever changes policies all the time keeps no other database waiting.
            if again {
                slot.changed.store(true, Ordering::Release);
            }
            return Ok(());
        }
        replicas.ask()?;
        let waits = do_others_wait();
        let is_quiet = now - last_change >= LINGER && !replicas.are_wanted();
        if waits || is_quiet {
            return Ok(());
        }
        activity::idle();
        background::wait(LINGER / 1000);
    }
}

/// Whether databases wait for a scheduler.
fn do_others_wait() -> bool {
    shared::control().waiting_databases.load(Ordering::Relaxed) > 0
}

/// Sleeps, whatever wakes it.
fn sleep(time: i64) {
    let until = background::monotonic().saturating_add(time);
    while until - background::monotonic() > 1000 {
        background::wait((until - background::monotonic()) / 1000);
    }
}

/// By how much standbys lag. Workers heed it, but an owner may not read it.
#[derive(Default)]
struct Replicas {
    asked: Option<i64>,
}

impl Replicas {
    /// Whether some worker has to know.
    fn are_wanted(&self) -> bool {
        settings::max_replica_lag().is_some() && processes::running(Kind::Worker) > 0
    }

    fn ask(&mut self) -> Result<(), Error> {
        let now = background::monotonic();
        let recently = self.asked.is_some_and(|at| now - at < REPLICAS_EVERY);
        if recently || !self.are_wanted() {
            return Ok(());
        }
        self.asked = Some(now);
        let seconds = worker_transaction::run(|| {
            let query = "SELECT pg_catalog.date_part('epoch', pg_catalog.max(replay_lag))::pg_catalog.float8 \
                         FROM pg_catalog.pg_stat_replication";
            let lag =
                Spi::connect(|client| client.select(query, Some(1), &[])?.first().get_one::<f64>());
            Ok(lag.ok().flatten())
        })?;
        // Conversions of floats saturate.
        let micros = (seconds.unwrap_or(0.0).max(0.0) * 1e6) as u64;
        let control = shared::control();
        control.replica_lag.store(micros, Ordering::Relaxed);
        control.replica_lag_at.store(now, Ordering::Relaxed);
        Ok(())
    }
}

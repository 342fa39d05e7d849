//! Which owner gets the next worker, as the launcher sees it: an owner in a database is a client.

use crate::deletion::worker_transaction;
use crate::error::Error;
use crate::pg::catalog::roles;
use crate::pg::server::background;
use crate::pg::session::owner_session::Ownership;
use crate::worker::queue::fairness::{self, Applicant, Backlog, LONG_TURN, Used};
use crate::worker::queue::schedule::Writes;
use crate::worker::shared::claims::{self, Client, Waiting};
use crate::worker::shared::log;
use crate::worker::shared::processes::{self, Kind, Process};
use pgrx::pg_sys;
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// What came of an attempt to start a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) enum StartOutcome {
    Yes,
    /// There are as many as there may be.
    Crowded,
    /// The server has no slot until one of the extension's own processes has ended, of which the
    /// postmaster tells.
    Soon,
    NoSlot,
}

/// The shortest time between two starts of a worker for one client,
const START_GAP: i64 = 300_000;
/// The time until the next attempt to start a worker, if the server has no slot,
const RETRY: i64 = 5_000_000;
/// and if all are taken by workers that may make room.
const RETRY_SOON: i64 = 200_000;
/// The first pause after a process that could not connect; it doubles with each further one.
const FIRST_PAUSE: i64 = 1_000_000;
const LONGEST_PAUSE: i64 = 60_000_000;
/// After this number of failed attempts, `ttl.problems` reports it.
const FAILURES: u32 = 2;
/// What is known of a client is forgotten after this time without news.
const FORGOTTEN: i64 = 600_000_000;

#[derive(Debug, Clone, Copy, Default)]
struct ClientState {
    /// When a worker was last started.
    started_at: i64,
    /// Since when it has been refused one, and when it last asked.
    refused: Option<(i64, i64)>,
    backlog: Backlog,
    /// Processes in a row that ended before they were connected.
    failures: u32,
    /// None is started before this.
    not_before: i64,
    /// The last news.
    at: i64,
}

/// The clients of all databases.
#[derive(Default)]
pub(in crate::worker) struct Clients {
    known: HashMap<Client, ClientState>,
    /// How much time owners' workers have used, in all databases. Apart from the tables' states, which end with their
    /// tables: who drops a table and makes another has used no less.
    used: HashMap<u32, Used>,
}

impl Clients {
    pub(in crate::worker) fn workers(client: Client) -> impl Iterator<Item = &'static Process> {
        processes::of(Kind::Worker).filter(move |worker| worker.client() == client)
    }

    /// The clients that need a worker now, after these writes, the first to be served first, and when the next one will.
    /// Wakes workers of clients whose tables are due. `admits`: whether processes may be in the
    /// database, and else when to ask again.
    pub(in crate::worker) fn due(
        &mut self,
        written: &HashMap<usize, Writes>,
        now: i64,
        admits: impl Fn(u32) -> Result<(), i64>,
    ) -> (i64, Vec<Client>) {
        let mut next = i64::MAX;
        let mut due = Vec::new();
        for (client, waiting) in claims::waiting(written, now) {
            let at = match admits(client.database) {
                Ok(()) => waiting.first_due,
                Err(at) => at.max(waiting.first_due),
            };
            let at = at.max(self.earliest(client, &waiting, now));
            if at > now {
                next = next.min(at);
            } else {
                due.push(client);
            }
        }
        self.known
            .retain(|_, known| now.saturating_sub(known.at) < FORGOTTEN);
        self.used
            .retain(|_, used| fairness::rank(used.now(now)) > 0);
        due.sort_by_cached_key(|client| {
            let known = self.known.get(client).copied().unwrap_or_default();
            let used = self.used.get(&client.owner).copied().unwrap_or_default();
            Applicant {
                workers: Self::workers(*client).count(),
                refused: known.refused.map_or(now, |(since, _)| since),
                rank: fairness::rank(used.now(now)),
                started_at: known.started_at,
            }
            .order(now)
        });
        (next, due)
    }

    /// When a further worker may be started for the client; as long as those that are there suffice, when to look again.
    fn earliest(&mut self, client: Client, waiting: &Waiting, now: i64) -> i64 {
        let (mut workers, mut attentive) = (0, false);
        for worker in Self::workers(client) {
            workers += 1;
            attentive |= worker.long_turn(now).is_none();
            if waiting.due > 0 && worker.is_idle() {
                background::wake(worker.pid.load(Ordering::Acquire));
            }
        }
        let known = self.known.entry(client).or_default();
        let wanted = known.backlog.needs_another(waiting.due, workers, now);
        if attentive && !wanted {
            return now + LONG_TURN;
        }
        known.at = now;
        (known.started_at + START_GAP).max(known.not_before)
    }

    /// How a process for the client is to come to belong to the owner; `None`: the role is gone.
    pub(in crate::worker) fn way(&self, client: Client) -> Result<Option<Ownership>, Error> {
        let owner = pg_sys::Oid::from(client.owner);
        // Something that cannot be seen from here keeps the role from connecting.
        let failed = self
            .known
            .get(&client)
            .is_some_and(|known| known.failures > 0);
        worker_transaction::run(|| {
            let way = || match failed {
                true => Ownership::Renounced,
                false => Ownership::of(client.database.into(), owner),
            };
            Ok(roles::exists(owner).then(way))
        })
    }

    /// A worker was started.
    pub(in crate::worker) fn is_served(&mut self, client: Client, now: i64) {
        let known = self.known.entry(client).or_default();
        known.started_at = now;
        known.at = now;
        known.refused = None;
    }

    /// None could be started; returns when to try again.
    pub(in crate::worker) fn is_refused(
        &mut self,
        client: Client,
        outcome: StartOutcome,
        now: i64,
    ) -> i64 {
        let known = self.known.entry(client).or_default();
        known.at = now;
        if Self::workers(client).next().is_none() {
            known.refused = match known.refused {
                Some((since, last)) if now.saturating_sub(last) < 2 * RETRY => Some((since, now)),
                _ => Some((now, now)),
            };
        }
        let pause = match outcome {
            StartOutcome::NoSlot => RETRY,
            _ => RETRY_SOON,
        };
        now.saturating_add(pause)
    }

    /// A worker has ended, whose turns have taken so long.
    pub(in crate::worker) fn has_ended(
        &mut self,
        client: Client,
        connected: bool,
        used: i64,
        now: i64,
    ) {
        self.used.entry(client.owner).or_default().add(used, now);
        let known = self.known.entry(client).or_default();
        known.at = now;
        if connected {
            let failures = std::mem::take(&mut known.failures);
            // One that has connected by giving up its identity says nothing about the other way:
            // that is tried again after a while.
            if failures >= FAILURES {
                claims::note_startable(client, true);
            }
            return;
        }
        known.failures = known.failures.saturating_add(1);
        let pause = FIRST_PAUSE.saturating_mul(1 << known.failures.saturating_sub(1).min(10));
        known.not_before = now.saturating_add(pause.min(LONGEST_PAUSE));
        if known.failures == FAILURES {
            claims::note_startable(client, false);
            log::warning(
                &format!(
                    "could not start a process for the owner with OID {} in the database with OID {}: expired rows of that owner's tables stay on disk",
                    client.owner, client.database
                ),
                "The message before this one says why. It is tried again, with growing pauses.",
            );
        }
    }
}

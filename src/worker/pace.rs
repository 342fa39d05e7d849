//! The pause between batches, by a measurement of how busy the server is.

use super::report;
use super::throttle::{self, Bounds, Load};
use crate::deletion::transaction;
use crate::error::Error;
use crate::pg::{activity, background, timeout};
use crate::settings;
use pgrx::prelude::*;
use std::time::{Duration, Instant};

/// The time over which active backends are averaged. A single look says little: two clients that
/// commit all the time are both active in every third.
const AVERAGED: Duration = Duration::from_millis(500);
/// How often standbys are asked about.
const REPLICAS_EVERY: Duration = Duration::from_secs(2);

/// What a worker remembers of the server's load.
pub(super) struct Pace {
    cores: f64,
    /// Active backends, averaged.
    active: f64,
    looked: Instant,
    /// The present share of the time, in percent.
    effort: f64,
    replica_lag: Duration,
    asked_replicas: Option<Instant>,
    /// The shortest time for a row, in seconds.
    best: f64,
}

impl Pace {
    pub(super) fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let cores = cores as f64;
        Self {
            cores,
            active: active(cores),
            looked: Instant::now(),
            effort: throttle::LEAST,
            replica_lag: Duration::ZERO,
            asked_replicas: None,
            best: f64::INFINITY,
        }
    }

    /// The present share of its time that this worker deletes, from 0 to 1.
    pub(super) fn share(&self) -> f64 {
        self.effort / 100.0
    }

    /// After a batch in a table that is behind by `table_lag`: pauses as long as the load
    /// requires.
    pub(super) fn settle(
        &mut self,
        rows: u64,
        took: Duration,
        table_lag: Duration,
    ) -> Result<(), Error> {
        self.ask_replicas()?;
        let load = Load {
            active: self.active,
            cores: self.cores,
            replica_lag: self.replica_lag,
            table_lag,
            slowdown: self.slowdown(rows, took),
        };
        let bounds = bounds();
        self.effort = throttle::effort(&load, &bounds);
        let pause = throttle::pause(took, self.effort);
        let cause = (!pause.is_zero()).then(|| throttle::cause(&load, &bounds));
        report::pace(self.effort, cause);
        background::check_postmaster();
        let until = Instant::now() + pause;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            // Writes wake a worker, but do not end its pause.
            let millis = i64::try_from(left.as_millis()).unwrap_or(0);
            if millis == 0 {
                break;
            }
            background::wait(millis);
        }
        report::pace(self.effort, None);
        timeout::Turn::paused(pause);
        // After the pause: during a batch clients may wait for it.
        self.look();
        Ok(())
    }

    fn look(&mut self) {
        let active = active(self.cores);
        // After idle time one look says no more than usual.
        let passed = self.looked.elapsed().min(AVERAGED / 2);
        let weight = 1.0 - (-passed.as_secs_f64() / AVERAGED.as_secs_f64()).exp();
        self.active += weight * (active - self.active);
        self.looked = Instant::now();
    }

    /// The time for a row relative to the shortest one. Small batches tell nothing.
    fn slowdown(&mut self, rows: u64, took: Duration) -> f64 {
        const ENOUGH: u64 = 200;
        if rows < ENOUGH {
            return 1.0;
        }
        let time = took.as_secs_f64() / rows as f64;
        // The shortest one ages, since tables differ.
        self.best = (self.best * 1.01).min(time);
        time / self.best.max(1e-9)
    }

    fn ask_replicas(&mut self) -> Result<(), Error> {
        let recently = self
            .asked_replicas
            .is_some_and(|at| at.elapsed() < REPLICAS_EVERY);
        if recently || settings::max_replica_lag().is_none() {
            return Ok(());
        }
        self.asked_replicas = Some(Instant::now());
        transaction::clean_session_for(None)?;
        let seconds = transaction::run(|| {
            let query = "SELECT pg_catalog.date_part('epoch', pg_catalog.max(replay_lag))::pg_catalog.float8 \
                         FROM pg_catalog.pg_stat_replication";
            let lag =
                Spi::connect(|client| client.select(query, Some(1), &[])?.first().get_one::<f64>());
            Ok(lag.ok().flatten())
        })?;
        self.replica_lag = Duration::try_from_secs_f64(seconds.unwrap_or(0.0)).unwrap_or_default();
        Ok(())
    }
}

/// How many clients use the server; if that is unknown, as many as it has processors.
fn active(cores: f64) -> f64 {
    activity::active_backends().map_or(cores, f64::from)
}

fn bounds() -> Bounds {
    Bounds {
        min_effort: f64::from(settings::min_effort()),
        max_effort: f64::from(settings::max_effort()),
        max_lag: settings::max_lag(),
        max_replica_lag: settings::max_replica_lag(),
    }
}

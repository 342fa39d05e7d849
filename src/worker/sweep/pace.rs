//! The pause between batches, by a measurement of how busy the server is.

use crate::error::Error;
use crate::pg::server::{activity, background, timeout};
use crate::settings;
use crate::worker::queue::throttle::{self, Bounds, Load};
use crate::worker::shared::REPLICAS_EVERY;
use crate::worker::shared::{self, worker_report};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The time over which active backends are averaged. A single look says little: two clients that
/// commit all the time are both active in every third.
const AVERAGED: Duration = Duration::from_millis(500);

/// What a worker remembers of the server's load.
pub(in crate::worker) struct Pace {
    cores: f64,
    /// Active backends, averaged.
    active: f64,
    looked: Instant,
    /// The present share of the time, in percent.
    effort: f64,
    /// The shortest time for a row, in seconds.
    best: f64,
}

impl Pace {
    pub(in crate::worker) fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let cores = cores as f64;
        Self {
            cores,
            active: active(cores),
            looked: Instant::now(),
            effort: throttle::LEAST,
            best: f64::INFINITY,
        }
    }

    /// The present share of its time that this worker deletes, from 0 to 1.
    pub(in crate::worker) fn share(&self) -> f64 {
        self.effort / 100.0
    }

    /// After a batch in a table that is behind by `table_lag`: pauses as long as the load
    /// requires.
    pub(in crate::worker) fn settle(
        &mut self,
        rows: u64,
        took: Duration,
        table_lag: Duration,
    ) -> Result<(), Error> {
        let load = Load {
            active: self.active,
            cores: self.cores,
            replica_lag: replica_lag(),
            table_lag,
            slowdown: self.slowdown(rows, took),
        };
        let bounds = bounds();
        self.effort = throttle::effort(&load, &bounds);
        let pause = throttle::pause(took, self.effort);
        let cause = (!pause.is_zero()).then(|| throttle::cause(&load, &bounds));
        worker_report::pace(self.effort, cause);
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
        worker_report::pace(self.effort, None);
        timeout::TimedTurn::paused(pause);
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
}

/// By how much standbys lag, as a scheduler has measured it lately.
fn replica_lag() -> Duration {
    let control = shared::control();
    let measured_at = control.replica_lag_at.load(Ordering::Relaxed);
    let is_recent = background::monotonic().saturating_sub(measured_at) < 5 * REPLICAS_EVERY;
    match is_recent && settings::max_replica_lag().is_some() {
        true => Duration::from_micros(control.replica_lag.load(Ordering::Relaxed)),
        false => Duration::ZERO,
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

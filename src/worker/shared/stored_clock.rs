//! The time by the wall clock, kept over a restart and a crash: a server that starts with a wrong clock deletes nothing for
//! `ttl.change_delay`, as one whose clock is set while it runs (C24).
//!
//! How long a server was down nothing but the wall clock tells. So this holds deletion after each stop of more than a minute,
//! too, and after the files of a backup have been put in place.

use super::control;
use crate::pg::server::background;
use crate::settings;
use crate::worker::queue::clock;
use crate::worker::shared;
use pgrx::prelude::*;
use std::fs;
use std::sync::atomic::{AtomicI64, Ordering};

/// In the data directory, every process's working directory.
const FILE: &str = "pg_stat/ttl_ext.clock";
const NEW_FILE: &str = "pg_stat/ttl_ext.clock.tmp";

/// The time is stored this often, in microseconds.
const EVERY: i64 = 10_000_000;

/// At the server's start and after a crash: holds deletion if the clock has jumped since the time was last stored.
pub(in crate::worker) fn compare() {
    let (now, monotonic) = (background::now(), background::monotonic());
    control()
        .wall_offset
        .store(background::wall_offset(), Ordering::Relaxed);
    let stored = fs::read_to_string(FILE).ok();
    let Some(before) = stored.and_then(|text| text.trim().parse().ok()) else {
        // The first start with the library.
        return;
    };
    let delay = settings::change_delay();
    if clock::has_jumped(before, now) && delay > 0 {
        let until = monotonic.saturating_add(delay);
        control()
            .deletion_held_until
            .store(until, Ordering::Relaxed);
        let apart = now.saturating_sub(before) / 1_000_000;
        log!(
            "deletion of expired rows is held for {} seconds: by the system clock, the server was last up {} seconds {}",
            delay / 1_000_000,
            apart.abs(),
            if apart < 0 { "from now" } else { "ago" }
        );
    }
}

/// Stores the time, unless deletion is held, since the clock may be wrong then. Errors are logged, once.
pub(in crate::worker) fn store() {
    if shared::is_deletion_held() {
        return;
    }
    let stored = fs::write(NEW_FILE, background::now().to_string());
    if let Err(error) = stored.and_then(|()| fs::rename(NEW_FILE, FILE)) {
        shared::log::once(
            "clock",
            &format!("could not write \"{FILE}\": {error}"),
            "If the server starts with a wrong clock, expired rows are deleted at once.",
        );
    }
}

/// The same, in the launcher, from time to time.
pub(in crate::worker) fn store_now_and_then() {
    static STORED_AT: AtomicI64 = AtomicI64::new(i64::MIN);
    let now = background::monotonic();
    if now.saturating_sub(STORED_AT.load(Ordering::Relaxed)) >= EVERY {
        STORED_AT.store(now, Ordering::Relaxed);
        store();
    }
}

//! Counters survive a restart, but not a crash, like PostgreSQL's statistics. After a clean
//! shutdown the postmaster writes them to a file, which it reads and removes at the next start.

use super::ExclusiveLock;
use super::counters::Counters;
use super::state::{TableKey, TableState};
use crate::worker::queue::quota::Claimant;
use pgrx::prelude::*;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, ErrorKind};

/// In the data directory, the postmaster's working directory, beside PostgreSQL's own files.
const FILE: &str = "pg_stat/ttl_ext.json";
const NEW_FILE: &str = "pg_stat/ttl_ext.json.tmp";

/// What the file holds about a table.
#[derive(Serialize, Deserialize)]
struct StoredCounters {
    database: u32,
    table: u32,
    /// The labelled table.
    #[serde(rename = "holder")]
    labelled_table: u32,
    #[serde(default)]
    owner: u32,
    /// The owner is a superuser.
    #[serde(default)]
    unlimited: bool,
    counters: Counters,
    /// The time that it has used, in microseconds.
    used: i64,
}

/// At the server's start, into empty memory.
pub(in crate::worker) fn read(memory: &mut ExclusiveLock) {
    match fs::read(FILE) {
        Ok(text) => match serde_json::from_slice::<Vec<StoredCounters>>(&text) {
            Ok(all) => all.iter().for_each(|kept| enter(memory, kept)),
            Err(error) => log!("ignoring \"{FILE}\", what it holds is wrong: {error}"),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => return,
        Err(error) => log!("could not read \"{FILE}\": {error}"),
    }
    // After a crash it would be outdated.
    if let Err(error) = fs::remove_file(FILE) {
        log!("could not remove \"{FILE}\": {error}");
    }
}

fn enter(memory: &mut ExclusiveLock, kept: &StoredCounters) {
    let key = TableKey {
        database: kept.database,
        relid: kept.table,
    };
    let claimant = Claimant {
        owner: kept.owner,
        unlimited: kept.unlimited,
    };
    let new = TableState::new(key, kept.labelled_table, claimant);
    if let Some(state) = memory.enter(&key, new) {
        // It is swept once a worker has found its policy.
        state.schedule.never();
        state.counters = kept.counters;
        state.habit.used = kept.used;
    }
}

/// When the server has stopped.
pub(in crate::worker) fn write(memory: &mut ExclusiveLock) {
    let mut all = Vec::new();
    memory.for_each(|state| {
        all.push(StoredCounters {
            database: state.key.database,
            table: state.key.relid,
            labelled_table: state.labelled_table,
            owner: state.owner,
            unlimited: state.unlimited,
            counters: Counters {
                // These are current values, not counters.
                oldest_expiry: 0,
                backlog: 0,
                blocked_rows: 0,
                last_error_at: 0,
                ..state.counters
            },
            used: state.habit.used,
        });
    });
    if let Err(error) = store(&all) {
        log!("could not write \"{FILE}\": {error}");
    }
}

fn store(all: &[StoredCounters]) -> io::Result<()> {
    fs::write(NEW_FILE, serde_json::to_vec(all)?)?;
    fs::rename(NEW_FILE, FILE)
}

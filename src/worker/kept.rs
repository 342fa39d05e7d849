//! Counters survive a restart, but not a crash, like PostgreSQL's statistics. After a clean
//! shutdown the postmaster writes them to a file, which it reads and removes at the next start.

use super::state::{Counters, TableKey, TableState};
use crate::pg::shmem::Locked;
use pgrx::prelude::*;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, ErrorKind};

/// In the data directory, the postmaster's working directory, beside PostgreSQL's own files.
const FILE: &str = "pg_stat/ttl_ext.json";
const NEW_FILE: &str = "pg_stat/ttl_ext.json.tmp";

/// What the file holds about a table.
#[derive(Serialize, Deserialize)]
struct Kept {
    database: u32,
    table: u32,
    /// The labelled table.
    #[serde(rename = "holder")]
    labelled_table: u32,
    counters: Counters,
    /// The time that it has used, in microseconds.
    used: i64,
}

/// At the server's start, into empty memory.
pub(super) fn read() {
    match fs::read(FILE) {
        Ok(text) => match serde_json::from_slice::<Vec<Kept>>(&text) {
            Ok(all) => all.iter().for_each(enter),
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

fn enter(kept: &Kept) {
    let key = TableKey {
        database: kept.database,
        relid: kept.table,
    };
    let mut lock = Locked::alone();
    // SAFETY: the types whose sizes `shared::init` asks for; nobody else is there.
    if let Some((state, _)) = unsafe { lock.enter::<_, TableState>(&key) } {
        *state = TableState::new(key, kept.labelled_table, 0, 0);
        // It is swept once a worker has found its policy.
        state.schedule.never();
        state.counters = kept.counters;
        state.habit.used = kept.used;
    }
}

/// When the server has stopped.
pub(super) fn write() {
    let mut all = Vec::new();
    let mut lock = Locked::alone();
    // SAFETY: as in `enter`.
    unsafe {
        lock.for_each::<TableState>(|state| {
            all.push(Kept {
                database: state.key.database,
                table: state.key.relid,
                labelled_table: state.labelled_table,
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
    }
    if let Err(error) = store(&all) {
        log!("could not write \"{FILE}\": {error}");
    }
}

fn store(all: &[Kept]) -> io::Result<()> {
    fs::write(NEW_FILE, serde_json::to_vec(all)?)?;
    fs::rename(NEW_FILE, FILE)
}

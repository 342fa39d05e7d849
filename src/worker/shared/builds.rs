//! The index builds that are wanted, which the launcher starts builders for, and what came of the
//! attempts (C21). In shared memory; empty after each start of the server: what is left to do stands
//! in the catalogs, and a scheduler finds it there.

use super::SharedLock;
use super::processes::{self, Client, Kind, Process, Task};
use super::state::{ErrorText, TableKey, with_table};
use crate::pg::server::background;
use crate::settings;
use crate::worker::queue::build_plan::{self, BuildState};
use crate::worker::shared;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;

/// The most tables whose builds are remembered,
pub(in crate::worker) const BUILDS: usize = 256;
/// and those of one owner. Others of the owner follow when these are built.
const FOR_ONE_OWNER: usize = BUILDS / 8;

/// A build that is wanted. Valid when zeroed.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::worker) struct Build {
    /// Its database 0: the entry is free.
    key: TableKey,
    owner: u32,
    attempts: u32,
    /// When a builder last began; 0: none has.
    began: i64,
    /// Not before.
    next: i64,
    /// None: it was ended in the middle, or still goes on.
    error: ErrorText<200>,
    /// It had to wait for a lock.
    is_waiting: bool,
}

impl Build {
    fn client(&self) -> Client {
        Client {
            database: self.key.database,
            owner: self.owner,
        }
    }

    fn is_free(&self) -> bool {
        self.key.database == 0
    }
}

/// Notes the tables of a database that have something to build, with their owners: for these the
/// launcher starts builders. Others are forgotten.
pub(in crate::worker) fn want(database: u32, tables: &[(u32, u32)]) {
    let mut lock = SharedLock::exclusive();
    let builds = shared::control().builds.get_mut(&mut lock);
    for build in builds.iter_mut() {
        let is_wanted = tables.contains(&(build.key.relid, build.owner));
        if build.key.database == database && !is_wanted {
            build.key.database = 0;
        }
    }
    for &(relid, owner) in tables {
        let key = TableKey { database, relid };
        let of_owner = |build: &&Build| !build.is_free() && build.owner == owner;
        if builds.iter().any(|build| build.key == key)
            || builds.iter().filter(of_owner).count() >= FOR_ONE_OWNER
        {
            continue;
        }
        if let Some(free) = builds.iter_mut().find(|build| build.is_free()) {
            *free = Build {
                key,
                owner,
                next: i64::MIN,
                ..Build::default()
            };
        }
    }
}

/// The table that a builder is at.
fn table_of(builder: &Process) -> TableKey {
    TableKey {
        database: builder.client().database,
        relid: builder.table.load(Ordering::Relaxed),
    }
}

/// The tables that a builder may be started for now, one of each owner in a database at most, and when
/// the next one will be due. First are the owners whose last builder began longest ago.
pub(in crate::worker) fn due(now: i64) -> (i64, Vec<(Client, u32)>) {
    let lock = SharedLock::shared();
    let builds = shared::control().builds.get(&lock).iter();
    let mut next = i64::MAX;
    let mut last: HashMap<u32, i64> = HashMap::new();
    let mut due: HashMap<Client, &Build> = HashMap::new();
    for build in builds.filter(|build| !build.is_free()) {
        let last = last.entry(build.owner).or_default();
        *last = (*last).max(build.began);
        if build.next > now {
            next = next.min(build.next);
        } else {
            let first = due.entry(build.client()).or_insert(build);
            if build.next < first.next {
                *first = build;
            }
        }
    }
    let is_served = |client| processes::of(Kind::Builder).any(|it| it.client() == client);
    let mut due: Vec<&Build> = due
        .into_values()
        .filter(|it| !is_served(it.client()))
        .collect();
    due.sort_by_key(|build| last.get(&build.owner).copied());
    let due = due
        .into_iter()
        .map(|build| (build.client(), build.key.relid));
    (next, due.collect())
}

fn key_of(task: Task) -> TableKey {
    TableKey {
        database: task.client.database,
        relid: task.table,
    }
}

/// A builder is being started. Noted first: an attempt that ends the process has failed.
pub(in crate::worker) fn has_begun(task: Task, now: i64) {
    with(key_of(task), |build| {
        build.attempts = build.attempts.saturating_add(1);
        build.began = now;
        build.next = now.saturating_add(build_plan::pause(build.attempts));
        build.error = ErrorText::default();
        build.is_waiting = false;
    });
}

/// An owner waits, and all builders are taken: the one that has been at it for longest leaves, if it
/// had its time. That grows with each attempt, so that a long build ends some day.
pub(in crate::worker) fn ask_for_room(now: i64) {
    let started_at = |builder: &&Process| builder.started_at.load(Ordering::Relaxed);
    let Some(longest) = processes::of(Kind::Builder).min_by_key(started_at) else {
        return;
    };
    let mut attempts = 0;
    with(table_of(longest), |build| attempts = build.attempts);
    if now - started_at(&longest) > build_plan::patience(attempts) {
        background::terminate(longest.pid.load(Ordering::Acquire));
    }
}

/// The server has no slot for a builder.
pub(in crate::worker) fn lacks_slot(task: Task) {
    const RETRY: i64 = 5_000_000;
    has_failed(
        key_of(task),
        "no background worker slot is free: raise max_worker_processes",
        false,
    );
    let again = background::monotonic().saturating_add(RETRY);
    with(key_of(task), |build| build.next = again);
}

/// A builder has ended. What it has to say it has said, if it had connected.
pub(in crate::worker) fn has_ended(task: Task, connected: bool) {
    if !connected {
        has_failed(
            key_of(task),
            "the index builder could not connect as the owner; see the server log",
            false,
        );
    }
}

fn with(key: TableKey, change: impl FnOnce(&mut Build)) {
    let mut lock = SharedLock::exclusive();
    let mut builds = shared::control().builds.get_mut(&mut lock).iter_mut();
    if let Some(build) = builds.find(|build| build.key == key) {
        change(build);
    }
}

/// Nothing is left to do at the table.
pub(in crate::worker) fn is_done(key: TableKey) {
    with(key, |build| build.key = TableKey::default());
}

/// The attempt ended so; `waits`: for a lock, which is no failure.
pub(in crate::worker) fn has_failed(key: TableKey, error: &str, waits: bool) {
    with(key, |build| {
        build.is_waiting = waits;
        if waits {
            build.attempts = build.attempts.saturating_sub(1);
        }
        build.error.set(error);
    });
}

/// Whether a builder is at the table, or is to come.
pub(in crate::worker) fn is_wanted(key: TableKey) -> bool {
    let lock = SharedLock::shared();
    let mut builds = shared::control().builds.get(&lock).iter();
    builds.any(|build| build.key == key)
}

pub(in crate::worker) fn pid_at(key: TableKey) -> Option<i32> {
    let mut builders = processes::of(Kind::Builder);
    let builder = builders.find(|builder| table_of(builder) == key)?;
    Some(builder.pid.load(Ordering::Acquire))
}

pub(in crate::worker) fn standing(key: TableKey) -> BuildState {
    if pid_at(key).is_some() {
        return BuildState::Building;
    }
    let lock = SharedLock::shared();
    let builds = shared::control().builds.get(&lock);
    match builds.iter().find(|build| build.key == key) {
        Some(build) if !build.is_waiting && build.attempts > 0 => {
            let error = build.error.get();
            BuildState::Failed(
                error.unwrap_or_else(|| "the builder was ended in the middle".to_owned()),
            )
        }
        _ => BuildState::Waiting,
    }
}

/// The labelled tables of a database that have outgrown being read, with their partitions, by what passes note of their
/// size (`docs/decisions/0094-no-index-where-none-is-needed.md`).
pub(in crate::worker) fn outgrown(database: u32) -> HashSet<u32> {
    let mut read: HashMap<u32, u64> = HashMap::new();
    SharedLock::shared().for_each(|state| {
        if state.key.database == database && state.read_blocks > 0 {
            *read.entry(state.labelled_table).or_default() += u64::from(state.read_blocks);
        }
    });
    let is_outgrown = |&(_, blocks): &(u32, u64)| blocks >= settings::auto_index_min_blocks();
    let outgrown = read.into_iter().filter(is_outgrown);
    outgrown.map(|(labelled_table, _)| labelled_table).collect()
}

/// Notes how many blocks a pass reads at a table. True if its labelled table has outgrown that just now.
pub(in crate::worker) fn note_size(key: TableKey, blocks: u32) -> bool {
    let before = with_table(key, |state| {
        (
            std::mem::replace(&mut state.read_blocks, blocks),
            state.labelled_table,
        )
    });
    let Some((before, labelled_table)) = before.filter(|&(before, _)| before < blocks) else {
        return false;
    };
    let mut others = 0;
    SharedLock::shared().for_each(|state| {
        if (state.key.database, state.labelled_table) == (key.database, labelled_table)
            && state.key != key
        {
            others += u64::from(state.read_blocks);
        }
    });
    let is_large = |blocks: u32| others + u64::from(blocks) >= settings::auto_index_min_blocks();
    is_large(blocks) && (before == 0 || !is_large(before))
}

/// The builder has been at a labelled table: its sizes are to be looked at anew.
pub(in crate::worker) fn forget_sizes(labelled_table: TableKey) {
    SharedLock::exclusive().for_each_mut(|state| {
        if (state.key.database, state.labelled_table)
            == (labelled_table.database, labelled_table.relid)
        {
            state.read_blocks = 0;
        }
    });
}

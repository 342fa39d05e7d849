//! What the index builder is at, and what came of its attempts (C21). In shared memory; empty
//! after each start of the server: what is left to do stands in the catalogs.

use super::build_plan::{self, Standing};
use super::shared::{self, Locked};
use super::state::TableKey;
use crate::pg::background;
use crate::pg::shmem::UnderLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU32, Ordering};

/// The most tables whose attempts are remembered.
const BUILDS: usize = 256;
/// The longest error that is kept, in bytes.
const ERROR: usize = 200;
/// A process that has not come up after this time will not.
const START: i64 = 30_000_000;

/// The builder: one for the server. Valid when zeroed.
#[repr(C)]
pub(super) struct Builder {
    /// 0: there is none; or [`shared::STARTING`].
    pub(super) pid: AtomicI32,
    started_at: AtomicI64,
    pub(super) database: AtomicU32,
    pub(super) table: AtomicU32,
    /// Another database that has work for it; 0: none.
    asked_by: AtomicU32,
    /// The server has no slot for it.
    lacks_slot: AtomicBool,
    builds: UnderLock<[Build; BUILDS]>,
}

/// Attempts at a table. Valid when zeroed.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Build {
    /// Its database 0: the entry is free.
    key: TableKey,
    attempts: u32,
    /// Not before.
    next: i64,
    /// 0: it was ended in the middle, or still goes on.
    error_len: u16,
    error: [u8; ERROR],
    /// It had to wait for a lock.
    is_waiting: bool,
}

fn builder() -> &'static Builder {
    &shared::control().builder
}

impl Builder {
    /// Whether there is a builder, or will be soon.
    fn is_there(&self, now: i64) -> bool {
        match self.pid.load(Ordering::Acquire) {
            0 => false,
            shared::STARTING => now - self.started_at.load(Ordering::Relaxed) < START,
            pid => background::is_alive(pid),
        }
    }
}

/// Reserves the builder's place for the first of these tables that is due. False if it is taken, or
/// none is.
pub(super) fn reserve(database: u32, tables: &[u32], now: i64) -> bool {
    let own = builder();
    let mut lock = Locked::exclusive();
    if own.is_there(now) {
        if own.database.load(Ordering::Relaxed) != database {
            own.asked_by.store(database, Ordering::Relaxed);
        }
        return false;
    }
    let builds = own.builds.get_mut(&mut lock);
    let key = |relid: u32| TableKey { database, relid };
    let next = |relid: u32| {
        let known = builds.iter().find(|build| build.key == key(relid));
        known.map_or(0, |build| build.next)
    };
    let first = tables.iter().map(|&relid| (next(relid), relid)).min();
    let Some((_, table)) = first.filter(|&(next, _)| next <= now) else {
        return false;
    };
    let place = builds
        .iter()
        .position(|build| build.key == key(table))
        .or_else(|| builds.iter().position(|build| build.key.database == 0))
        .or_else(|| (0..BUILDS).min_by_key(|&place| builds[place].next));
    let Some(build) = place.and_then(|place| builds.get_mut(place)) else {
        return false;
    };
    let attempts = if build.key == key(table) {
        build.attempts.saturating_add(1)
    } else {
        1
    };
    // Noted first: an attempt that ends the process has failed.
    *build = Build {
        key: key(table),
        attempts,
        next: now.saturating_add(build_plan::pause(attempts)),
        error_len: 0,
        error: [0; ERROR],
        is_waiting: false,
    };
    own.database.store(database, Ordering::Relaxed);
    own.table.store(table, Ordering::Relaxed);
    own.started_at.store(now, Ordering::Relaxed);
    own.pid.store(shared::STARTING, Ordering::Release);
    true
}

/// The process could not be started.
pub(super) fn lacks_slot(lacks: bool) {
    builder().lacks_slot.store(lacks, Ordering::Relaxed);
    if lacks {
        builder().pid.store(0, Ordering::Release);
    }
}

/// Takes the place that was reserved for this process: its table.
pub(super) fn take_place() -> Option<TableKey> {
    let own = builder();
    let taken = own.pid.compare_exchange(
        shared::STARTING,
        background::my_pid(),
        Ordering::AcqRel,
        Ordering::Relaxed,
    );
    taken.ok().map(|_| TableKey {
        database: own.database.load(Ordering::Relaxed),
        relid: own.table.load(Ordering::Relaxed),
    })
}

/// Leaves the place, and tells those who may have work for the next builder.
pub(super) fn leave_place() {
    let own = builder();
    let me = background::my_pid();
    let database = own.database.load(Ordering::Relaxed);
    own.table.store(0, Ordering::Relaxed);
    let left = own
        .pid
        .compare_exchange(me, 0, Ordering::AcqRel, Ordering::Relaxed);
    if left.is_err() {
        return;
    }
    for database in [database, own.asked_by.swap(0, Ordering::Relaxed)] {
        if database != 0 && shared::allot_database(database).is_some() {
            shared::wake(database);
        }
    }
}

fn with(key: TableKey, change: impl FnOnce(&mut Build)) {
    let mut lock = Locked::exclusive();
    let mut builds = builder().builds.get_mut(&mut lock).iter_mut();
    if let Some(build) = builds.find(|build| build.key == key) {
        change(build);
    }
}

/// Nothing is left to do at the table.
pub(super) fn is_done(key: TableKey) {
    with(key, |build| {
        build.key = TableKey {
            database: 0,
            relid: 0,
        }
    });
}

/// The attempt ended so; `waits`: for a lock, which is no failure.
pub(super) fn has_failed(key: TableKey, error: &str, waits: bool) {
    let mut end = error.len().min(ERROR);
    while !error.is_char_boundary(end) {
        end -= 1;
    }
    with(key, |build| {
        build.is_waiting = waits;
        if waits {
            build.attempts = build.attempts.saturating_sub(1);
        }
        build.error[..end].copy_from_slice(&error.as_bytes()[..end]);
        build.error_len = u16::try_from(end).unwrap_or(0);
    });
}

/// The PID of the builder, if it is at this table, or at any with `None`.
pub(super) fn pid_at(database: u32, table: Option<u32>) -> Option<i32> {
    let own = builder();
    let is_there = own.is_there(background::now())
        && own.database.load(Ordering::Relaxed) == database
        && table.is_none_or(|table| own.table.load(Ordering::Relaxed) == table);
    is_there.then(|| own.pid.load(Ordering::Acquire))
}

/// How the builder stands with the table.
pub(super) fn standing(key: TableKey) -> Standing {
    if pid_at(key.database, Some(key.relid)).is_some() {
        return Standing::Building;
    }
    if builder().lacks_slot.load(Ordering::Relaxed) {
        return Standing::Failed(
            "no background worker slot is free: raise max_worker_processes".to_owned(),
        );
    }
    let lock = Locked::shared();
    let builds = builder().builds.get(&lock);
    match builds.iter().find(|build| build.key == key) {
        Some(build) if !build.is_waiting => {
            let error = build.error.get(..usize::from(build.error_len));
            let error = error.filter(|error| !error.is_empty());
            Standing::Failed(
                error.map_or("the builder was ended in the middle".to_owned(), |it| {
                    String::from_utf8_lossy(it).into_owned()
                }),
            )
        }
        _ => Standing::Waiting,
    }
}

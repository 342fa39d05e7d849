//! What launcher, workers and sessions share: who works where, what is due, what was done. Empty
//! after each start of the server and each crash.

pub(in crate::worker) mod blocked;
pub(in crate::worker) mod builds;
pub(in crate::worker) mod claims;
pub(crate) mod counters;
pub(crate) mod deletion_state;
pub(crate) mod leave_database;
pub(in crate::worker) mod log;
pub(crate) mod places;
pub(crate) mod prepared_transactions;
pub(in crate::worker) mod processes;
pub(in crate::worker) mod progress;
pub(in crate::worker) mod requested;
pub(crate) mod state;
pub(in crate::worker) mod stored_clock;
pub(in crate::worker) mod stored_counters;
pub(crate) mod wakeups;
pub(crate) mod worker_report;

use self::blocked::BlockedRow;
use self::builds::{BUILDS, Build};
use self::prepared_transactions::{PREPARED, PreparedWrites};
use self::processes::{PROCESSES, Process};
use self::requested::RequestedRow;
use self::state::{TableKey, TableState};
use crate::pg::server::background;
use crate::pg::server::shmem::{self, UnderLock};
use crate::settings;
use crate::worker::queue::clock;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicI64, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

/// How often standbys are asked by how much they lag, in microseconds.
pub(super) const REPLICAS_EVERY: i64 = 2_000_000;

/// The most databases with TTL tables.
pub(super) const DATABASES: usize = 1024;
/// Marks of tables that were written to. Two tables may share one: then a table is scanned that no session has written to.
const MARKS: usize = 16384;
/// The most rows set aside, in all tables.
pub(super) const BLOCKED_ROWS: usize = 8192;

/// The structure in shared memory. Valid when zeroed.
#[repr(C)]
pub(super) struct SharedMemory {
    pub(super) launcher: AtomicI32,
    /// How many owners wait for a free worker.
    pub(super) waiting: AtomicU32,
    /// How many databases wait for a free scheduler.
    pub(super) waiting_databases: AtomicU32,
    /// Since when the launcher has started workers as it should.
    pub(super) on_since: AtomicI64,
    /// How far the wall clock was ahead of the monotonic one when the launcher last compared them.
    pub(super) wall_offset: AtomicI64,
    /// Until then nothing is deleted, since the wall clock was set, or may have been while the server was down.
    pub(super) deletion_held_until: AtomicI64,
    /// By how much standbys lag, in microseconds, as a scheduler has measured it.
    pub(super) replica_lag: AtomicU64,
    /// When it did.
    pub(super) replica_lag_at: AtomicI64,
    pub(super) databases: [Database; DATABASES],
    /// High-water mark: slots at or above this index were never used.
    taken: AtomicUsize,
    pub(super) processes: [Process; PROCESSES],
    pub(super) marks: [AtomicU8; MARKS],
    /// Counts transactions that have set marks.
    pub(super) writes: AtomicU32,
    /// Counts those after which a row may expire before the next routine scan.
    pub(super) urgent: AtomicU32,
    /// The launcher waits for writes and asks to be woken.
    pub(super) wants_wake: AtomicBool,
    pub(super) prepared: [PreparedWrites; PREPARED],
    pub(super) builds: UnderLock<[Build; BUILDS]>,
    pub(super) requested: UnderLock<[RequestedRow; requested::MOST]>,
    pub(super) blocked: UnderLock<[BlockedRow; BLOCKED_ROWS]>,
}

/// A database that has TTL tables, or must be checked for some.
#[repr(C)]
pub(super) struct Database {
    /// 0: the slot is free.
    pub(super) oid: AtomicU32,
    /// When a scheduler is to read the policies next.
    pub(super) due: AtomicI64,
    /// A policy has changed: they are to be read now.
    pub(super) changed: AtomicBool,
    /// Since when a change has not been read yet; 0 = all are.
    pub(super) changed_since: AtomicI64,
    /// How often catalogs had been written to when the policies were read; 0 if they are to be read anyhow.
    pub(super) catalogs: AtomicI64,
    /// Until then no process may be there: a statement needs the database without connections.
    pub(super) held_until: AtomicI64,
    /// When a scheduler was last started there.
    pub(super) started_at: AtomicI64,
    /// How many tables have no state for lack of room.
    pub(super) without_room: AtomicU32,
    /// Something is due there, but the server has no slot for a process.
    pub(super) lacks_slot: AtomicBool,
}

impl Database {
    /// Whether a statement needs the database without connections.
    pub(super) fn is_held(&self) -> bool {
        self.held_until.load(Ordering::Relaxed) > background::monotonic()
    }
}

/// What is in shared memory: [`Control`], and the states of tables by their keys.
pub(super) struct Contents;

// SAFETY: the only one. Atomics and numbers are valid when zeroed; keys are two numbers of the
// same size.
unsafe impl shmem::Contents for Contents {
    type Control = SharedMemory;
    type Key = TableKey;
    type Entry = TableState;
    const STARTED: fn(&mut ExclusiveLock) = started;
    const STOPPING: fn(&mut ExclusiveLock) = stopping;

    fn entries() -> i64 {
        i64::from(settings::max_tables())
    }
}

fn started(memory: &mut ExclusiveLock) {
    stored_counters::read(memory);
    stored_clock::compare();
}

fn stopping(memory: &mut ExclusiveLock) {
    stored_counters::write(memory);
    stored_clock::store();
}

pub(super) type SharedLock = shmem::Locked<Contents>;
pub(super) type ExclusiveLock = shmem::Exclusive<Contents>;

pub(super) fn control() -> &'static SharedMemory {
    shmem::control::<Contents>()
}

pub(super) fn database(oid: u32) -> Option<&'static Database> {
    databases().find(|&(it, _)| it == oid).map(|(_, slot)| slot)
}

/// The database's slot, allotted if necessary and marked as changed; `None` if all are taken.
pub(super) fn allot_database(oid: u32) -> Option<&'static Database> {
    let _lock = SharedLock::exclusive();
    let now = background::monotonic();
    if let Some(slot) = database(oid) {
        if slot.changed_since.load(Ordering::Acquire) == 0 {
            slot.changed_since.store(now, Ordering::Release);
        }
        slot.changed.store(true, Ordering::Release);
        return Some(slot);
    }
    let databases = &control().databases;
    let is_free = |slot: &Database| slot.oid.load(Ordering::Relaxed) == 0;
    let free = databases.iter().position(is_free)?;
    let slot = databases.get(free)?;
    slot.due.store(0, Ordering::Relaxed);
    slot.changed.store(true, Ordering::Relaxed);
    slot.changed_since.store(now, Ordering::Relaxed);
    slot.catalogs.store(0, Ordering::Relaxed);
    slot.held_until.store(0, Ordering::Relaxed);
    slot.started_at.store(0, Ordering::Relaxed);
    slot.without_room.store(0, Ordering::Relaxed);
    slot.lacks_slot.store(false, Ordering::Relaxed);
    // First, so that no process that searches for the database from now on misses the slot.
    control().taken.fetch_max(free + 1, Ordering::Release);
    slot.oid.store(oid, Ordering::Release);
    Some(slot)
}

/// Frees the slot of a database that is gone.
pub(super) fn free_database(slot: &Database) {
    let _lock = SharedLock::exclusive();
    slot.oid.store(0, Ordering::Release);
}

/// Frees the slot of a database without policies, unless it has got some meanwhile.
pub(super) fn free_unchanged(slot: &Database) {
    let _lock = SharedLock::exclusive();
    if !slot.changed.load(Ordering::Acquire) {
        slot.oid.store(0, Ordering::Release);
    }
}

/// The number of the mark of a table's writes.
pub(super) fn mark_number(database: u32, labelled_table: u32) -> usize {
    let hash = u64::from(database)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .wrapping_add(u64::from(labelled_table))
        .wrapping_mul(0xD6E8_FEB8_6659_FD93);
    usize::try_from(hash >> 40).unwrap_or(0) % MARKS
}

pub(super) fn mark(number: usize) -> &'static AtomicU8 {
    &control().marks[number]
}

pub(super) fn wake_launcher() {
    background::wake(control().launcher.load(Ordering::Relaxed));
}

pub(super) fn databases() -> impl Iterator<Item = (u32, &'static Database)> {
    let taken = control().taken.load(Ordering::Acquire);
    let slots = control().databases.iter().take(taken);
    slots
        .map(|slot| (slot.oid.load(Ordering::Acquire), slot))
        .filter(|&(oid, _)| oid != 0)
}

/// The wall clock has been set by more than a minute, and the launcher has not noticed yet, or holds
/// deletion because of it.
pub(super) fn is_deletion_held() -> bool {
    let control = control();
    control.deletion_held_until.load(Ordering::Relaxed) > background::monotonic()
        || clock::has_jumped(
            control.wall_offset.load(Ordering::Relaxed),
            background::wall_offset(),
        )
}

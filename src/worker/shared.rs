//! What launcher, workers and sessions share: who works where, what is due, what was done. Empty
//! after each start of the server and each crash.

use super::blocked::BlockedRow;
use super::builds::Builder;
use super::kept;
use super::owners::{Account, OWNERS};
use super::prepared::{PREPARED, Prepared};
use super::report::Report;
use super::state::{TableKey, TableState};
use crate::pg::background;
use crate::pg::shmem::{self, UnderLock};
use crate::settings::{self, WORKERS};
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicI64, AtomicU8, AtomicU32, AtomicUsize, Ordering,
};

/// The most databases with TTL tables.
pub(super) const DATABASES: usize = 1024;
/// Marks of tables that were written to. Two tables may share one: then a table is looked at
/// that nobody has written to; across databases, a look may come only after `ttl.naptime`.
const MARKS: usize = 16384;
/// The most rows set aside, in all tables.
pub(super) const BLOCKED_ROWS: usize = 8192;

/// In a worker's slot, instead of a PID: the process is being started.
pub(super) const STARTING: i32 = -1;

/// The structure in shared memory. Valid when zeroed.
#[repr(C)]
pub(super) struct Control {
    pub(super) launcher: AtomicI32,
    /// The address of its latch, for signal handlers.
    pub(super) launcher_latch: AtomicUsize,
    /// How many databases wait for a free worker.
    pub(super) waiting: AtomicU32,
    /// Since when the launcher has started workers as it should.
    pub(super) on_since: AtomicI64,
    pub(super) databases: [Database; DATABASES],
    /// Beyond so many slots none has ever been taken.
    taken: AtomicUsize,
    pub(super) workers: [Worker; WORKERS],
    pub(super) marks: [AtomicU8; MARKS],
    pub(super) prepared: [Prepared; PREPARED],
    pub(super) builder: Builder,
    pub(super) blocked: UnderLock<[BlockedRow; BLOCKED_ROWS]>,
    pub(super) owners: UnderLock<[Account; OWNERS]>,
}

/// A database that has TTL tables, or must be checked for some.
#[repr(C)]
pub(super) struct Database {
    /// 0: the slot is free.
    pub(super) oid: AtomicU32,
    /// When a worker should be there next.
    pub(super) due: AtomicI64,
    /// A policy has changed: the tables must be looked up again.
    pub(super) changed: AtomicBool,
    /// Counts such changes.
    pub(super) changes: AtomicU32,
    /// A prepared transaction may change a policy unnoticed.
    pub(super) keep: AtomicBool,
    /// Counts transactions that have set marks of this database's tables.
    pub(super) writes: AtomicU32,
    /// Counts those after which a row may expire before the next routine look.
    pub(super) urgent: AtomicU32,
    /// The value of `urgent` when a worker last took the marks into the schedule.
    pub(super) urgent_taken: AtomicU32,
    /// Whoever waits for writes to this database asks to be woken.
    pub(super) wants_wake: AtomicBool,
    /// Until then no worker may be there: a statement needs the database without connections.
    pub(super) held_until: AtomicI64,
    /// When a worker was last started there.
    pub(super) started_at: AtomicI64,
    /// How many tables are due, by its workers' count.
    pub(super) due_tables: AtomicU32,
    /// How many tables have no state for lack of room.
    pub(super) without_room: AtomicU32,
    /// It has no worker, because the server has no slot for one.
    pub(super) lacks_slot: AtomicBool,
}

impl Database {
    /// A policy has changed, or rows were written, and no worker has noticed.
    pub(super) fn is_told(&self) -> bool {
        self.changed.load(Ordering::SeqCst)
            || self.urgent.load(Ordering::SeqCst) != self.urgent_taken.load(Ordering::SeqCst)
    }
}

/// A worker.
#[repr(C)]
pub(super) struct Worker {
    /// 0: the slot is free; or [`STARTING`].
    pub(super) pid: AtomicI32,
    pub(super) database: AtomicU32,
    /// When its current turn began; 0 = none. During a turn it notices nothing.
    pub(super) turn: AtomicI64,
    /// That turn has been going on for long.
    pub(super) long: AtomicBool,
    /// That turn is at a table of a slow owner.
    pub(super) slow: AtomicBool,
    /// Others wait for this worker.
    pub(super) give_way: AtomicBool,
    pub(super) report: Report,
}

impl Worker {
    /// Notes that it is in no turn.
    pub(super) fn clear_turn(&self) {
        self.report.set_table(0);
        self.slow.store(false, Ordering::Relaxed);
        self.turn.store(0, Ordering::Relaxed);
        self.long.store(false, Ordering::Release);
    }

    /// Notes that it begins a turn at a table.
    pub(super) fn set_turn(&self, table: u32, slow: bool, now: i64) {
        self.report.set_table(table);
        self.give_way.store(false, Ordering::Relaxed);
        self.slow.store(slow, Ordering::Relaxed);
        self.turn.store(now, Ordering::Release);
    }
}

/// What is in shared memory: [`Control`], and the states of tables by their keys.
pub(super) struct Contents;

// SAFETY: the only one. Atomics and numbers are valid when zeroed; keys are two numbers of the
// same size.
unsafe impl shmem::Contents for Contents {
    type Control = Control;
    type Key = TableKey;
    type Entry = TableState;
    const STARTED: fn(&mut Exclusive) = kept::read;
    const STOPPING: fn(&mut Exclusive) = kept::write;

    fn entries() -> i64 {
        i64::from(settings::max_tables())
    }
}

pub(super) type Locked = shmem::Locked<Contents>;
pub(super) type Exclusive = shmem::Exclusive<Contents>;

pub(super) fn control() -> &'static Control {
    shmem::control::<Contents>()
}

/// The database's slot.
///
/// Looked up at each commit that has written to a table with TTL: so the search begins where it
/// last ended, and does not go beyond the slots that were ever taken. Where deletion has been off
/// since the server's start, there is none.
pub(super) fn database(oid: u32) -> Option<&'static Database> {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    let databases = &control().databases;
    let is_there = |slot: &Database| slot.oid.load(Ordering::Relaxed) == oid;
    let last = databases.get(LAST.load(Ordering::Relaxed));
    if let Some(slot) = last.filter(|slot| is_there(slot)) {
        return Some(slot);
    }
    let taken = control().taken.load(Ordering::Acquire);
    let found = databases.iter().take(taken).position(is_there)?;
    LAST.store(found, Ordering::Relaxed);
    databases.get(found)
}

/// The database's slot, allotted if necessary and marked as changed; `None` if all are taken.
pub(super) fn allot_database(oid: u32) -> Option<&'static Database> {
    let _lock = Locked::exclusive();
    if let Some(slot) = database(oid) {
        slot.changes.fetch_add(1, Ordering::AcqRel);
        slot.changed.store(true, Ordering::Release);
        return Some(slot);
    }
    let databases = &control().databases;
    let is_free = |slot: &Database| slot.oid.load(Ordering::Relaxed) == 0;
    let free = databases.iter().position(is_free)?;
    let slot = databases.get(free)?;
    slot.due.store(0, Ordering::Relaxed);
    slot.changed.store(true, Ordering::Relaxed);
    slot.keep.store(false, Ordering::Relaxed);
    slot.writes.store(0, Ordering::Relaxed);
    slot.urgent.store(0, Ordering::Relaxed);
    slot.urgent_taken.store(0, Ordering::Relaxed);
    slot.wants_wake.store(false, Ordering::Relaxed);
    slot.held_until.store(0, Ordering::Relaxed);
    slot.started_at.store(0, Ordering::Relaxed);
    slot.due_tables.store(0, Ordering::Relaxed);
    slot.without_room.store(0, Ordering::Relaxed);
    slot.lacks_slot.store(false, Ordering::Relaxed);
    // First, so that nobody misses the slot who looks for the database from now on.
    control().taken.fetch_max(free + 1, Ordering::Release);
    slot.oid.store(oid, Ordering::Release);
    Some(slot)
}

/// Frees the slot of a database that is gone.
pub(super) fn free_database(slot: &Database) {
    let _lock = Locked::exclusive();
    slot.oid.store(0, Ordering::Release);
}

/// Frees the slot of a database without policies, unless it has got some meanwhile.
pub(super) fn free_unchanged(slot: &Database) {
    let _lock = Locked::exclusive();
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

/// A mark.
pub(super) fn mark(number: usize) -> &'static AtomicU8 {
    &control().marks[number]
}

/// The workers in a database.
pub(super) fn workers_in(database: u32) -> impl Iterator<Item = &'static Worker> {
    control().workers.iter().filter(move |worker| {
        worker.pid.load(Ordering::Acquire) != 0
            && worker.database.load(Ordering::Relaxed) == database
    })
}

/// This process's index among the workers, plus one; 0 = it is none.
static OWN: AtomicUsize = AtomicUsize::new(0);

/// Notes this process's index.
pub(super) fn take_place(place: usize) {
    OWN.store(place + 1, Ordering::Relaxed);
}

/// This process's entry, if it is a worker.
pub(super) fn own() -> Option<&'static Worker> {
    let place = OWN.load(Ordering::Relaxed).checked_sub(1)?;
    control().workers.get(place)
}

/// This worker's turn takes long: the launcher takes care of what waits for it, now and at each
/// write. In a signal handler: atomics and a latch only.
pub(super) fn tell_long_turn() {
    let Some(worker) = own() else { return };
    worker.long.store(true, Ordering::SeqCst);
    let oid = worker.database.load(Ordering::Relaxed);
    let databases = control().databases.iter();
    let here = |slot: &&Database| slot.oid.load(Ordering::Relaxed) == oid;
    if let Some(slot) = databases.into_iter().find(here) {
        slot.wants_wake.store(true, Ordering::SeqCst);
    }
    wake_launcher();
}

/// Wakes the launcher. In a signal handler, too.
pub(super) fn wake_launcher() {
    background::set_latch(control().launcher_latch.load(Ordering::Relaxed));
}

/// How many workers there are.
pub(super) fn running() -> usize {
    let workers = control().workers.iter();
    workers
        .filter(|worker| worker.pid.load(Ordering::Acquire) != 0)
        .count()
}

/// Whether others wait for this worker. In a signal handler.
pub(super) fn is_asked_for_room() -> bool {
    own().is_some_and(|worker| worker.give_way.load(Ordering::Relaxed))
}

/// How many other workers are in a turn at a slow owner's table.
pub(super) fn others_in_slow_turns() -> usize {
    let me = background::my_pid();
    let slow = |worker: &&Worker| {
        let pid = worker.pid.load(Ordering::Acquire);
        worker.slow.load(Ordering::Relaxed) && pid != me && background::is_alive(pid)
    };
    control().workers.iter().filter(slow).count()
}

/// Wakes the workers of a database, and the launcher if none of them notices.
pub(super) fn wake(database: u32) {
    let mut woken = false;
    for worker in workers_in(database) {
        background::wake(worker.pid.load(Ordering::Relaxed));
        woken |= !worker.long.load(Ordering::SeqCst);
    }
    if !woken {
        background::wake(control().launcher.load(Ordering::Relaxed));
    }
}

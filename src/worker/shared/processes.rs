//! The background processes of the extension, in shared memory: which there are, for which
//! database and owner, and what each is at. The launcher alone gives places away, and starts the
//! process for each.

use crate::pg::server::background;
use crate::pg::session;
use crate::pg::session::owner_session::{self, Ownership};
use crate::settings::{self, WORKERS};
use crate::worker::queue::fairness::LONG_TURN;
use crate::worker::shared;
use std::ffi::{CStr, CString};
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicI64, AtomicU8, AtomicU32, AtomicUsize, Ordering,
};
use std::time::Duration;

/// The most schedulers at a time: it leaves when it has read the policies of its database, if another
/// one waits.
const SCHEDULERS: usize = 1;
/// The most index builders at a time. More than one, so that an owner whose build does not end holds
/// up no other owner.
const BUILDERS: usize = 3;
/// All places.
pub(in crate::worker) const PROCESSES: usize = WORKERS + SCHEDULERS + BUILDERS;

/// Instead of a PID: the process is being started.
pub(in crate::worker) const STARTING: i32 = -1;

/// What a process is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::worker) enum Kind {
    /// Reads the policies of a database; a superuser's, runs no code of others.
    Scheduler = 1,
    /// Deletes expired rows of one owner's tables in a database, as this owner.
    Worker,
    /// Builds the indexes of one table, as its owner.
    Builder,
}

impl Kind {
    /// For the log and pg_stat_activity.
    pub(in crate::worker) fn name(self) -> &'static str {
        match self {
            Self::Scheduler => "ttl_ext scheduler",
            Self::Worker => "ttl_ext worker",
            Self::Builder => "ttl_ext index builder",
        }
    }

    /// The most of them at a time.
    pub(in crate::worker) fn most(self) -> usize {
        match self {
            Self::Scheduler => SCHEDULERS,
            Self::Worker => crate::settings::max_workers(),
            Self::Builder => BUILDERS,
        }
    }
}

/// What a process is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) struct Task {
    pub(in crate::worker) kind: Kind,
    /// The owner is 0 for a scheduler.
    pub(in crate::worker) client: Client,
    /// The table of a builder; otherwise 0.
    pub(in crate::worker) table: u32,
    pub(in crate::worker) way: Ownership,
}

/// A place for a process. Valid when zeroed.
#[repr(C)]
pub(in crate::worker) struct Process {
    /// 0: the place is free; or [`STARTING`].
    pub(in crate::worker) pid: AtomicI32,
    kind: AtomicU8,
    pub(in crate::worker) database: AtomicU32,
    pub(in crate::worker) owner: AtomicU32,
    pub(in crate::worker) table: AtomicU32,
    /// It has given up its identity ([`Ownership::Renounced`]).
    renounced: AtomicBool,
    /// It has come as far as being connected.
    pub(in crate::worker) connected: AtomicBool,
    pub(in crate::worker) started_at: AtomicI64,
    /// When its current transaction must have ended; 0: there is none. The launcher ends a process
    /// that is past this: nothing within the process can prevent that.
    pub(in crate::worker) deadline: AtomicI64,
    /// When its current turn at a table began; 0 = none.
    turn: AtomicI64,
    /// That turn is at a slow table.
    pub(in crate::worker) slow: AtomicBool,
    /// Others wait for this process.
    pub(in crate::worker) give_way: AtomicBool,
    /// How much time its turns have taken, pauses excluded.
    pub(in crate::worker) used: AtomicI64,
    pub(in crate::worker) report: Report,
}

impl Process {
    /// Makes this process the owner's, for good.
    pub(in crate::worker) fn connect(&self) {
        owner_session::begin(
            self.database.load(Ordering::Acquire).into(),
            self.owner.load(Ordering::Acquire).into(),
            self.way(),
            settings_of_transactions,
        );
        self.connected.store(true, Ordering::Release);
    }

    pub(in crate::worker) fn is(&self, kind: Kind) -> bool {
        self.pid.load(Ordering::Acquire) != 0 && self.kind.load(Ordering::Relaxed) == kind as u8
    }

    pub(in crate::worker) fn client(&self) -> Client {
        Client {
            database: self.database.load(Ordering::Relaxed),
            owner: self.owner.load(Ordering::Relaxed),
        }
    }

    /// How the process belongs to its owner.
    pub(in crate::worker) fn way(&self) -> Ownership {
        match self.renounced.load(Ordering::Relaxed) {
            true => Ownership::Renounced,
            false => Ownership::Connected,
        }
    }

    /// Gives the place to a process that is about to be started.
    pub(in crate::worker) fn allot(&self, task: Task, now: i64) {
        self.clear_turn();
        self.kind.store(task.kind as u8, Ordering::Relaxed);
        self.database.store(task.client.database, Ordering::Relaxed);
        self.owner.store(task.client.owner, Ordering::Relaxed);
        self.table.store(task.table, Ordering::Relaxed);
        let renounced = task.way == Ownership::Renounced;
        self.renounced.store(renounced, Ordering::Relaxed);
        self.connected.store(false, Ordering::Relaxed);
        self.started_at.store(now, Ordering::Relaxed);
        self.used.store(0, Ordering::Relaxed);
        self.pid.store(STARTING, Ordering::Release);
    }

    /// Frees the place; whether its process had connected, and what it has used, stays for the launcher.
    pub(in crate::worker) fn free(&self) {
        let turn = self.turn.load(Ordering::Relaxed);
        if turn != 0 {
            // Code of the owner has ended it.
            let took = background::monotonic().saturating_sub(turn);
            self.used.fetch_add(took, Ordering::Relaxed);
        }
        self.clear_turn();
        self.database.store(0, Ordering::Relaxed);
        self.pid.store(0, Ordering::Release);
    }

    pub(in crate::worker) fn clear_turn(&self) {
        self.report.set_table(0);
        self.deadline.store(0, Ordering::Relaxed);
        self.slow.store(false, Ordering::Relaxed);
        self.turn.store(0, Ordering::Relaxed);
        self.give_way.store(false, Ordering::Relaxed);
    }

    /// Whether it is in no turn.
    pub(in crate::worker) fn is_idle(&self) -> bool {
        self.turn.load(Ordering::Acquire) == 0
    }

    /// When its turn began, if that has been going on for long.
    pub(in crate::worker) fn long_turn(&self, now: i64) -> Option<i64> {
        let began = self.turn.load(Ordering::Acquire);
        (began != 0 && now.saturating_sub(began) > LONG_TURN).then_some(began)
    }

    /// Notes that its turn has ended, and how long it took.
    pub(in crate::worker) fn end_turn(&self, took: Duration) {
        let took = i64::try_from(took.as_micros()).unwrap_or(i64::MAX);
        self.used.fetch_add(took, Ordering::Relaxed);
        self.clear_turn();
    }

    /// Notes that it begins a turn at a table.
    pub(in crate::worker) fn set_turn(&self, table: u32, slow: bool, now: i64) {
        self.report.set_table(table);
        self.give_way.store(false, Ordering::Relaxed);
        self.slow.store(slow, Ordering::Relaxed);
        self.turn.store(now, Ordering::Release);
    }
}

fn all() -> impl Iterator<Item = &'static Process> {
    shared::control().processes.iter()
}

pub(in crate::worker) fn of(kind: Kind) -> impl Iterator<Item = &'static Process> {
    all().filter(move |process| process.is(kind))
}

pub(in crate::worker) fn in_database(database: u32) -> impl Iterator<Item = &'static Process> {
    all().filter(move |process| {
        process.pid.load(Ordering::Acquire) != 0
            && process.database.load(Ordering::Relaxed) == database
    })
}

pub(in crate::worker) fn workers_in(database: u32) -> impl Iterator<Item = &'static Process> {
    in_database(database).filter(|process| process.is(Kind::Worker))
}

/// How many there are of this kind.
pub(in crate::worker) fn running(kind: Kind) -> usize {
    of(kind).count()
}

/// This process's place, plus one; 0 = it has none.
static OWN: AtomicUsize = AtomicUsize::new(0);

pub(in crate::worker) fn own() -> Option<&'static Process> {
    let place = OWN.load(Ordering::Relaxed).checked_sub(1)?;
    shared::control().processes.get(place)
}

/// Takes the place that the launcher has given to this process; `None` if its database is to be
/// left alone.
pub(in crate::worker) fn take(place: usize) -> Option<&'static Process> {
    let process = shared::control().processes.get(place)?;
    let database = process.database.load(Ordering::Acquire);
    if database == 0 {
        return None;
    }
    OWN.store(place + 1, Ordering::Relaxed);
    process.report.clear();
    process.pid.store(background::my_pid(), Ordering::Release);
    let is_held = shared::database(database).is_some_and(shared::Database::is_held);
    (!is_held).then_some(process)
}

/// The tables of this worker's owner at which other workers were in a turn before this one began its own. Another owner's turns
/// would let that one starve this one.
pub(in crate::worker) fn tables_of_earlier_turns() -> Vec<u32> {
    let turn = |process: &Process| {
        let table = process.report.table()?;
        Some((process.turn.load(Ordering::Acquire), table))
    };
    let Some((own, began)) = own().and_then(|own| Some((own, turn(own)?))) else {
        return vec![];
    };
    let client = own.client();
    let workers = workers_in(client.database).filter(|it| it.client() == client);
    let others = workers.filter_map(turn);
    let earlier = others.filter(|other| *other < began);
    earlier.map(|(_, table)| table).collect()
}

/// How many other workers are in a turn at a slow table.
pub(in crate::worker) fn others_in_slow_turns() -> usize {
    let me = background::my_pid();
    let slow = |process: &&Process| {
        let pid = process.pid.load(Ordering::Acquire);
        process.slow.load(Ordering::Relaxed) && pid != me && background::is_alive(pid)
    };
    of(Kind::Worker).filter(slow).count()
}

/// Notes the time limit of the transaction that begins; 0: it has ended. Raises no error.
pub(in crate::worker) fn set_deadline(deadline: i64) {
    if let Some(own) = own() {
        own.deadline.store(deadline, Ordering::Relaxed);
    }
}

/// Whether others wait for this process. In a signal handler.
pub(in crate::worker) fn is_asked_for_room() -> bool {
    own().is_some_and(|own| own.give_way.load(Ordering::Relaxed))
}

/// What all processes rely on: neither the configuration, the database nor the role changes it.
const SETTINGS: &[(&CStr, &CStr)] = &[
    // Deletions lost in a crash are repeated; and nothing waits for a standby.
    (c"synchronous_commit", c"off"),
    (c"exit_on_error", c"off"),
    (c"session_replication_role", c"origin"),
    (c"row_security", c"on"),
    (c"quote_all_identifiers", c"off"),
    (c"statement_timeout", c"0"),
    (c"idle_in_transaction_session_timeout", c"0"),
    #[cfg(since17)]
    (c"transaction_timeout", c"0"),
    (c"ttl.show_expired", c"off"),
    (c"ttl.preserve_ts", c"off"),
];

/// Sets it for the session of this process, in which no code of an owner runs but within a transaction that has settings
/// of its own.
pub(in crate::worker) fn prepare_session() {
    let of_session = [
        (c"search_path", c"pg_catalog, pg_temp"),
        (c"default_transaction_isolation", c"read committed"),
        (c"default_transaction_read_only", c"off"),
        (c"default_transaction_deferrable", c"off"),
        (c"role", c"none"),
    ];
    for (name, value) in of_session.iter().chain(SETTINGS) {
        session::force(&name.to_string_lossy(), &value.to_string_lossy());
    }
}

/// What deletion relies on, in each transaction; code of the owner that ran before does not change it either.
fn settings_of_transactions(set: &dyn Fn(&CStr, &CStr)) {
    let of_deletion = [
        // Rows are deleted while a query runs: in one process, in order, and by the access paths
        // that batches are made for.
        (c"max_parallel_workers_per_gather", c"0"),
        (c"synchronize_seqscans", c"off"),
        (c"enable_tidscan", c"on"),
        (c"enable_indexscan", c"on"),
        (c"enable_bitmapscan", c"on"),
        // A DELETE by a list of TIDs reads those rows, not the whole table.
        (c"random_page_cost", c"0.1"),
        (c"jit", c"off"),
    ];
    for (name, value) in SETTINGS.iter().chain(&of_deletion) {
        set(name, value);
    }
    if let Ok(timeout) = CString::new(settings::lock_timeout_ms().to_string()) {
        set(c"lock_timeout", &timeout);
    }
}

/// An owner in a database: whose tables one worker deletes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::worker) struct Client {
    pub(in crate::worker) database: u32,
    pub(in crate::worker) owner: u32,
}

/// What a worker's slot says of its turn. Each field stands for itself, as in pg_stat_progress_*: a reader of all of
/// them may see two moments.
#[repr(C)]
pub(in crate::worker) struct Report {
    /// The table of its turn; 0 = none.
    pub(super) table: AtomicU32,
    /// A [`Phase`].
    pub(super) phase: AtomicU8,
    /// 0, or a [`crate::worker::queue::throttle::Cause`] of the pause that is going on.
    pub(super) pause: AtomicU8,
    /// The share of its time that it deletes, in hundredths of a percent; 0 = not known yet.
    pub(super) effort: AtomicU32,
}

/// What a worker does in its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::worker) enum Phase {
    Idle,
    Preparing,
    DroppingPartition,
    SweepingIndex,
    SweepingHeap,
    LookingAhead,
}

impl Phase {
    pub(super) const ALL: [(Self, &'static str); 6] = [
        (Self::Idle, "idle"),
        (Self::Preparing, "preparing"),
        (Self::DroppingPartition, "dropping partition"),
        (Self::SweepingIndex, "sweeping index"),
        (Self::SweepingHeap, "sweeping heap"),
        (Self::LookingAhead, "looking ahead"),
    ];
}

impl Report {
    pub(in crate::worker) fn table(&self) -> Option<u32> {
        Some(self.table.load(Ordering::Relaxed)).filter(|&table| table != 0)
    }

    /// A turn begins at a table, or, with 0, ends.
    pub(in crate::worker) fn set_table(&self, table: u32) {
        let phase = if table == 0 {
            Phase::Idle
        } else {
            Phase::Preparing
        };
        self.phase.store(phase as u8, Ordering::Relaxed);
        self.pause.store(0, Ordering::Relaxed);
        self.table.store(table, Ordering::Relaxed);
    }

    /// A new process has come into the slot.
    pub(in crate::worker) fn clear(&self) {
        self.set_table(0);
        self.effort.store(0, Ordering::Relaxed);
    }
}

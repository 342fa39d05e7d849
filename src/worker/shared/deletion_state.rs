//! State of deletion, for the monitoring views: whether a table's figures are current, and if not,
//! why. Opens no table, and waits for nothing but the lock on shared memory.

use super::Database;
use super::state::{self, TableKey, TableState};
use super::{claims, processes};
use crate::citus;
use crate::pg::catalog::{self, databases};
use crate::pg::server::background;
use crate::policy::Policy;
use crate::settings;
use crate::store::{cache, label_of};
use crate::worker::shared;
use pgrx::pg_sys;
use std::sync::atomic::Ordering;

/// A table that is due is neglected when it has waited for this long, and a worker stalled that has been at it
/// for as long, in microseconds.
const NEGLECTED: i64 = 60_000_000;
/// From this number of failures in a row, the size of the batch is not the only cause.
const FAILURES: u32 = 3;

/// Why nothing is deleted in the whole database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Halt {
    /// A standby: by design.
    Standby,
    /// `ttl.enabled` is off.
    Off,
    /// The server is on another timeline than `ttl.timeline`.
    Recovered,
    /// Workers leave templates alone.
    Template,
    NoLauncher,
    /// The launcher finds no slot for a worker.
    NoSlot,
}

/// Why nothing is deleted in this database; `None` if deletion works.
pub(crate) fn halted() -> Option<Halt> {
    let database = background::my_database().to_u32();
    let lacks_slot = |slot: &Database| {
        slot.lacks_slot.load(Ordering::Acquire) && processes::workers_in(database).next().is_none()
    };
    if background::in_recovery() {
        Some(Halt::Standby)
    } else if !settings::enabled() {
        Some(Halt::Off)
    } else if is_recovered() {
        Some(Halt::Recovered)
    } else if databases::is_template(database) {
        Some(Halt::Template)
    } else if shared::control().launcher.load(Ordering::Acquire) == 0 {
        Some(Halt::NoLauncher)
    } else if shared::database(database).is_some_and(lacks_slot) {
        Some(Halt::NoSlot)
    } else {
        None
    }
}

/// Whether background deletion is on, on a server that is not in recovery.
pub(in crate::worker) fn is_on() -> bool {
    settings::enabled() && !is_recovered()
}

/// Whether a recovery has put the server on another timeline than that on which rows are to be
/// deleted.
pub(in crate::worker) fn is_recovered() -> bool {
    ![0, background::timeline()].contains(&settings::timeline())
}

/// Whether a worker is in this database.
pub(crate) fn is_worked_on() -> bool {
    let database = background::my_database().to_u32();
    processes::workers_in(database).next().is_some()
}

/// The tables and partitions whose rows expire by this table's policy, on this node. Of those that are
/// tables of Citus, only what the coordinator drops as a whole.
pub(crate) fn expiring(labelled_table: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let is_dropped = |relid| {
        catalog::is_partition(relid)
            && citus::is_coordinator()
            && label_of(labelled_table).is_some_and(|policy| policy.drop_partitions)
    };
    let follows = |relid: &pg_sys::Oid| {
        cache::policy(*relid).is_some_and(|policy| {
            policy.labelled_table == labelled_table
                && policy.expires()
                && (!policy.is_shell() || is_dropped(*relid))
        })
    };
    citus::with_shards(&[labelled_table])
        .into_iter()
        .filter(|&relid| catalog::has_rows(relid))
        .filter(follows)
        .collect()
}

/// The same, of a table with this label. Most need no look at catalogs but pg_class.
pub(crate) fn expiring_by(labelled_table: pg_sys::Oid, policy: &Policy) -> Vec<pg_sys::Oid> {
    match policy.default_ttl.is_some_and(|seconds| seconds > 0) && is_seen_alone(labelled_table) {
        true => vec![labelled_table],
        false => expiring(labelled_table),
    }
}

/// Whether it is a table without children in which a worker has found that its own label is in force.
fn is_seen_alone(relid: pg_sys::Oid) -> bool {
    let is_alone = |class: catalog::Class| class.has_rows() && !class.may_have_children;
    let is_seen = |state: TableState| state.is_target() && state.labelled_table == relid.to_u32();
    state::get(TableKey::here(relid)).is_some_and(is_seen)
        && catalog::class(relid).is_some_and(is_alone)
        && citus::part(relid).is_none()
}

/// How deletion stands in a table, partition or child, unless it is halted everywhere.
#[derive(Debug)]
pub(crate) struct DeletionState {
    /// `None` if the last look is too old, or was by another policy.
    pub(crate) figures: Option<Figures>,
    pub(crate) trouble: Option<Obstacle>,
    /// More rows cannot be deleted than can be set aside.
    pub(crate) crowded: bool,
}

/// The findings of the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Figures {
    /// Expired rows that are on disk; `None` if the look is too old to tell.
    pub(crate) backlog: Option<i64>,
    /// When the oldest row expired, or will; 0: no row does, or it is not known.
    pub(crate) oldest_expiry: i64,
}

impl Figures {
    /// What outdated figures still tell: when the oldest row expired, if that is past.
    pub(crate) fn outdated(self, now: i64) -> Option<Self> {
        let waits = self.oldest_expiry != 0 && self.oldest_expiry <= now;
        waits.then_some(Self {
            backlog: None,
            ..self
        })
    }
}

/// Why no worker scans the table, or scans it without result.
#[derive(Debug)]
pub(crate) enum Obstacle {
    /// There is no room in shared memory, for this owner at least.
    NoRoom,
    /// Temporary tables are their sessions' own.
    Temporary,
    /// Deletion fails again and again.
    Failing(Option<String>),
    /// No process could be started that belongs to the owner.
    CannotStart,
    /// Nothing is deleted for a while, since the wall clock was set.
    ClockWasSet,
    /// It is due, but no worker comes.
    Neglected,
    /// No scheduler comes to an end with the policies of the database.
    Unread,
    /// This worker does not come to an end with it.
    Stalled(i32),
    /// This number of rows cannot be deleted, for this reason; the others are.
    Blocked(i64, Option<String>),
    /// This number of rows are locked by others' transactions, and one has been expired for long.
    Locked(u64),
}

/// How deletion stands in a table, partition or child with rows that expire.
pub(crate) fn of(relid: pg_sys::Oid) -> DeletionState {
    let unknown = |trouble| DeletionState {
        figures: None,
        trouble,
        crowded: false,
    };
    let is_temporary = |class: catalog::Class| class.persistence == pg_sys::RELPERSISTENCE_TEMP;
    if catalog::class(relid).is_some_and(is_temporary) {
        return unknown(Some(Obstacle::Temporary));
    }
    let key = TableKey::here(relid);
    let now = background::monotonic();
    let slot = shared::database(key.database);
    let is_unread = slot.is_some_and(|slot| is_unread(slot, now));
    match state::get(key) {
        Some(state) if state.is_target() => return assess(&state, now),
        _ if is_unread => return unknown(Some(Obstacle::Unread)),
        // A worker has not seen it yet.
        Some(_) => return unknown(None),
        None => {}
    }
    let is_full = slot.is_some_and(|slot| slot.without_room.load(Ordering::Relaxed) > 0);
    unknown(is_full.then_some(Obstacle::NoRoom))
}

/// Whether a change of policies there has been waiting for long.
fn is_unread(slot: &Database, now: i64) -> bool {
    let since = slot.changed_since.load(Ordering::Acquire);
    let on_since = shared::control().on_since.load(Ordering::Relaxed);
    since != 0 && now.saturating_sub(since.max(on_since)) > NEGLECTED
}

/// Whether the oldest row that is on disk expired long ago.
fn is_late(state: &TableState) -> bool {
    let oldest = state.counters.oldest_expiry;
    oldest != 0 && background::now().saturating_sub(oldest) > NEGLECTED
}

fn assess(state: &TableState, now: i64) -> DeletionState {
    let on_since = shared::control().on_since.load(Ordering::Relaxed);
    let is_neglected = state
        .schedule
        .waiting_since()
        .map(|at| at.max(state.since).max(on_since))
        .is_some_and(|since| now.saturating_sub(since) > NEGLECTED);
    let is_stalled = state
        .schedule
        .in_turn_since()
        .is_some_and(|since| now.saturating_sub(since) > NEGLECTED);
    let figures = Figures {
        backlog: Some(state.counters.backlog),
        oldest_expiry: state.counters.oldest_expiry,
    };
    DeletionState {
        figures: match is_neglected || is_stalled {
            true => figures.outdated(background::now()),
            false => Some(figures),
        }
        .filter(|_| state.is_seen),
        trouble: if shared::is_deletion_held() {
            Some(Obstacle::ClockWasSet)
        } else if state.unstartable {
            Some(Obstacle::CannotStart)
        } else if state.failing && state.schedule.failures() >= FAILURES {
            Some(Obstacle::Failing(state.error.get()))
        } else if is_stalled && let Some(pid) = claims::worker_at(state) {
            Some(Obstacle::Stalled(pid))
        } else if is_stalled || is_neglected {
            // If the worker has died, none has come since.
            Some(Obstacle::Neglected)
        } else if state.counters.blocked_rows > 0 {
            Some(Obstacle::Blocked(
                state.counters.blocked_rows,
                state.error.get(),
            ))
        } else if state.progress.locked > 0 && state.crowded_at == 0 && is_late(state) {
            Some(Obstacle::Locked(state.progress.locked))
        } else {
            None
        },
        crowded: state.crowded_at != 0,
    }
}

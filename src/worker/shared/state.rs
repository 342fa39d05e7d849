//! What is known about each table and partition: its schedule, its progress and its counters. In
//! shared memory, under the lock.

use super::counters::Counters;
pub(in crate::worker) use super::progress::Progress;
use super::{ExclusiveLock, SharedLock};
use crate::deletion::receiver::FoundRow;
use crate::pg::server::background;
use crate::settings;
use crate::worker::queue::emptiness::Emptiness;
use crate::worker::queue::fairness::Habit;
use crate::worker::queue::quota::{Claimant, Places, Refusal};
use crate::worker::queue::schedule::Schedule;
use crate::worker::shared;
use pgrx::pg_sys;
use std::collections::HashSet;

#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct TableKey {
    pub(crate) database: u32,
    pub(crate) relid: u32,
}

impl TableKey {
    /// The key of a table of this process's database.
    pub(in crate::worker) fn here(relid: pg_sys::Oid) -> Self {
        Self {
            database: background::my_database().to_u32(),
            relid: relid.to_u32(),
        }
    }
}

/// What is known about a table or partition. Under the lock.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct TableState {
    pub(crate) key: TableKey,
    /// The labelled table.
    pub(crate) labelled_table: u32,
    /// Who owns it, whose place it is; 0 = not known yet.
    pub(in crate::worker) owner: u32,
    /// How soon a row that is written now can be deleted, in microseconds.
    pub(in crate::worker) shortest: i64,
    /// It is a partition that may be dropped as a whole.
    pub(in crate::worker) drops: bool,
    /// No process of the owner could be started.
    pub(in crate::worker) unstartable: bool,
    /// The owner is a superuser.
    pub(in crate::worker) unlimited: bool,
    /// The session whose transaction gives it a time to live, and holds its place; 0 for none.
    pub(in crate::worker) reserved_by: i32,
    /// How much time it takes.
    pub(crate) habit: Habit,
    /// The time of the present policy: nothing has waited for longer.
    pub(in crate::worker) since: i64,
    /// Backlog and oldest expiry come from a look at the table, by the present policy.
    pub(in crate::worker) is_seen: bool,
    /// The last turn failed, with the error that is kept.
    pub(in crate::worker) failing: bool,
    /// A batch of the current turn has taken very long for few rows.
    pub(in crate::worker) dawdled: bool,
    /// A hash of the policy that the rest was found under.
    pub(in crate::worker) fingerprint: u64,
    pub(in crate::worker) schedule: Schedule,
    pub(in crate::worker) progress: Progress,
    pub(crate) counters: Counters,
    pub(in crate::worker) warned_restored: bool,
    /// Before this time no attempt is made to drop the partition as a whole.
    pub(in crate::worker) not_whole_before: i64,
    /// Whether the partition may be dropped if it is empty.
    pub(in crate::worker) emptiness: Emptiness,
    /// The table's file, in which rows have been set aside, and the position was reached; 0 = not seen yet.
    pub(in crate::worker) file: u32,
    /// How many blocks a pass reads, for lack of an index that the builder could build; `u32::MAX` if the builder is to
    /// come for another reason; 0 if it is not to come.
    pub(in crate::worker) read_blocks: u32,
    /// The worker that was at it died in the middle of a turn.
    pub(in crate::worker) died: bool,
    /// When a row last could not be set aside for lack of room; 0 = all have been.
    pub(in crate::worker) crowded_at: i64,
    /// How many expired rows live ones refer to, as last counted; and when they are to be counted again.
    pub(in crate::worker) referred: i64,
    /// When the first of them expired; 0 = unknown.
    pub(in crate::worker) referred_since: i64,
    pub(in crate::worker) count_again_at: i64,
    /// How much had been written to catalogs when rows that are set aside were last tried; 0 = unknown.
    pub(in crate::worker) catalogs_seen: i64,
    /// The only row of the current batch.
    pub(in crate::worker) single: Option<FoundRow>,
    pub(crate) error: ErrorText<262>,
}

impl TableState {
    /// The state of a table about which nothing is known yet; no target.
    pub(in crate::worker) fn new(key: TableKey, labelled_table: u32, claimant: Claimant) -> Self {
        Self {
            key,
            labelled_table,
            owner: claimant.owner,
            unlimited: claimant.unlimited,
            ..Self::default()
        }
    }

    /// Who has its place.
    pub(in crate::worker) fn claimant(&self) -> Claimant {
        Claimant {
            owner: self.owner,
            unlimited: self.unlimited,
        }
    }

    /// Whether a turn at it has begun, which its worker may not have survived.
    pub(in crate::worker) fn is_in_turn(&self) -> bool {
        self.schedule.in_turn_since().is_some()
    }

    /// Whether it is to be swept; otherwise it only holds counters.
    pub(in crate::worker) fn is_target(&self) -> bool {
        self.fingerprint != 0
    }
}

/// Calls `work` with a table's state, under the lock; `None` if there is none. `work` must not
/// do anything that can raise an error.
pub(in crate::worker) fn with_table<T>(
    key: TableKey,
    work: impl FnOnce(&mut TableState) -> T,
) -> Option<T> {
    SharedLock::exclusive().find_mut(&key).map(work)
}

/// The places for tables, and who has them.
fn places(lock: &SharedLock) -> Places {
    let mut owners = Vec::new();
    lock.for_each(|state| owners.push(state.owner));
    let total = u32::try_from(settings::max_tables()).unwrap_or(0);
    Places::new(total, owners)
}

/// Whether there is a place for one more table of this owner.
pub(in crate::worker) fn admits(claimant: Claimant) -> Result<(), Refusal> {
    places(&SharedLock::shared()).admits(claimant)
}

/// Enters tables under one lock: their owners' places are counted once, if a table is new.
pub(in crate::worker) struct Entering {
    lock: ExclusiveLock,
    places: Option<Places>,
    now: i64,
}

impl Entering {
    pub(in crate::worker) fn begin() -> Self {
        let now = background::monotonic();
        Self {
            lock: SharedLock::exclusive(),
            places: None,
            now,
        }
    }

    /// Makes sure that the table has a state; whether it is this new one.
    pub(in crate::worker) fn ensure(&mut self, new: &TableState) -> Result<bool, Refusal> {
        if self.lock.find(&new.key).is_some() {
            return Ok(false);
        }
        let places = self.places.get_or_insert_with(|| places(&self.lock));
        places.take(new.claimant())?;
        let since = self.now;
        match self.lock.enter(&new.key, TableState { since, ..*new }) {
            Some(_) => Ok(true),
            None => Err(Refusal::Full {
                total: u32::try_from(settings::max_tables()).unwrap_or(0),
            }),
        }
    }

    pub(in crate::worker) fn state(&mut self, key: &TableKey) -> Option<&mut TableState> {
        self.lock.find_mut(key)
    }

    pub(in crate::worker) fn remove(&mut self, key: &TableKey) {
        self.lock.remove(key);
        self.places = None;
    }
}

/// Makes sure that a table has a state; false if there is no room.
pub(in crate::worker) fn ensure_table(new: &TableState) -> bool {
    Entering::begin().ensure(new).is_ok()
}

/// Forgets the tables for which `gone` is true, and their blocked rows.
pub(in crate::worker) fn remove_tables(gone: impl Fn(&TableState) -> bool) {
    let mut keys = HashSet::new();
    let mut lock = SharedLock::exclusive();
    lock.for_each(|state| {
        if gone(state) {
            keys.insert(state.key);
        }
    });
    remove(&mut lock, &keys);
}

fn remove(lock: &mut ExclusiveLock, keys: &HashSet<TableKey>) {
    for key in keys {
        lock.remove(key);
    }
    for row in shared::control().blocked.get_mut(lock) {
        if row.table.database != 0 && keys.contains(&row.table) {
            row.table.database = 0;
        }
    }
}

/// Forgets the tables of a database that are no longer to be swept. Their counters are added to
/// those of the labelled table, as long as that exists.
pub(in crate::worker) fn remove_targets(
    database: u32,
    is_target: impl Fn(u32) -> bool,
    is_holder: impl Fn(u32) -> bool,
) {
    let gone = |state: &TableState| state.key.database == database && !is_target(state.key.relid);
    let is_sum = |state: &TableState| is_holder(state.key.relid);
    let gone = |state: &TableState| gone(state) && !state.is_in_turn() && state.reserved_by == 0;
    for state in tables_of(database) {
        if gone(&state) && !is_sum(&state) && is_holder(state.labelled_table) {
            with_sum(database, state.labelled_table, state.claimant(), |sum| {
                sum.counters.add(&state.counters)
            });
        }
    }
    remove_tables(|state| gone(state) && !is_sum(state));
    SharedLock::exclusive().for_each_mut(|state| {
        if gone(state) {
            state.schedule.never();
            state.fingerprint = 0;
        }
    });
}

/// Calls `work` with the state of a labelled table, which keeps the counters of dropped ones; it
/// need not be swept itself.
fn with_sum(
    database: u32,
    labelled_table: u32,
    claimant: Claimant,
    work: impl FnOnce(&mut TableState),
) {
    let key = TableKey {
        database,
        relid: labelled_table,
    };
    if ensure_table(&TableState::new(key, labelled_table, claimant)) {
        with_table(key, |sum| {
            if sum.fingerprint == 0 {
                sum.schedule.never();
            }
            work(sum);
        });
    }
}

/// Forgets a partition that this process has dropped, and counts it.
pub(in crate::worker) fn forget_dropped(key: TableKey, labelled_table: u32) {
    let known = with_table(key, |state| (state.counters, state.claimant()));
    let Some((counted, claimant)) = known else {
        return;
    };
    remove(&mut SharedLock::exclusive(), &HashSet::from([key]));
    with_sum(key.database, labelled_table, claimant, |sum| {
        sum.counters.add(&counted);
        sum.counters.partitions_dropped += 1;
    });
}

/// Sets the counters of these labelled tables and of what follows them to zero.
pub(crate) fn reset_counters(database: u32, tables: &[(u32, Claimant)]) {
    let now = background::now();
    for &(labelled_table, claimant) in tables {
        // So that there is one to note the time in.
        with_sum(database, labelled_table, claimant, |_| ());
    }
    let labelled_tables: HashSet<u32> = tables.iter().map(|(table, _)| *table).collect();
    SharedLock::exclusive().for_each_mut(|state| {
        if state.key.database == database && labelled_tables.contains(&state.labelled_table) {
            state.counters.reset(now);
            state.habit.used = 0;
        }
    });
}

/// Whether this is the first question about this restored table.
pub(in crate::worker) fn warn_restored(key: TableKey, claimant: Claimant) -> bool {
    ensure_table(&TableState::new(key, key.relid, claimant))
        && with_table(key, |state| {
            state.schedule.never();
            !std::mem::replace(&mut state.warned_restored, true)
        }) == Some(true)
}

/// A copy of a table's state.
pub(in crate::worker) fn get(key: TableKey) -> Option<TableState> {
    SharedLock::shared().find(&key).copied()
}

/// A copy of the states of a database's tables.
pub(crate) fn tables_of(database: u32) -> Vec<TableState> {
    let mut states = Vec::new();
    SharedLock::shared().for_each(|state| {
        if state.key.database == database {
            states.push(*state);
        }
    });
    states
}

/// The text of an error, of at most `N` bytes. Valid when zeroed: there is none.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct ErrorText<const N: usize> {
    len: u16,
    bytes: [u8; N],
}

impl<const N: usize> Default for ErrorText<N> {
    fn default() -> Self {
        Self {
            len: 0,
            bytes: [0; N],
        }
    }
}

impl<const N: usize> ErrorText<N> {
    pub(crate) fn get(&self) -> Option<String> {
        let bytes = self.bytes.get(..usize::from(self.len))?;
        (!bytes.is_empty()).then(|| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Keeps the text, cut at a character boundary.
    pub(in crate::worker) fn set(&mut self, text: &str) {
        let end = text.floor_char_boundary(N);
        self.bytes[..end].copy_from_slice(&text.as_bytes()[..end]);
        self.len = u16::try_from(end).unwrap_or(0);
    }
}

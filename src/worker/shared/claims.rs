//! Which worker works on which table. In shared memory, under the lock.

use super::SharedLock;
use super::owners;
use super::processes::{self, Kind};
use super::state::{Progress, TableKey, TableState};
use crate::pg::server::background;
use crate::settings;
use crate::worker::queue::fairness::{self, Spent};
use crate::worker::queue::schedule::{Outcome, Writes};
use crate::worker::shared;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The most tables that a worker claims at a time: to search for them goes through all tables.
const CLAIMS: usize = 512;
/// After this time, tables are looked at again that wait because too many workers are at tables
/// of slow owners.
const NOT_ADMITTED: i64 = 1_000_000;

/// The time charged to an owner whose code has ended a worker, in microseconds: about what it
/// took, and the start of another.
const DEATH: i64 = 3_000_000;

/// The result of [`claim_next`].
pub(in crate::worker) struct Next {
    pub(in crate::worker) claimed: Vec<TableKey>,
    /// When the first table is due that no other worker has.
    pub(in crate::worker) first_due: i64,
}

/// Workers that are at one table for long: any worker may take the other tables that they have claimed.
struct Busy(Vec<i32>);

impl Busy {
    fn now() -> Self {
        let long = processes::of(Kind::Worker).filter(|worker| worker.long.load(Ordering::Acquire));
        Self(
            long.map(|worker| worker.pid.load(Ordering::Acquire))
                .collect(),
        )
    }

    /// Whether a worker other than `me` is at the table, or will be soon.
    fn holds(&self, state: &TableState, me: i32) -> bool {
        state.claimed_by != 0
            && state.claimed_by != me
            && (state.working || !self.0.contains(&state.claimed_by))
            && background::is_alive(state.claimed_by)
    }
}

/// Whether turns at the table count as those of a slow owner.
fn is_slow(state: &TableState, standing: owners::Standing) -> bool {
    standing.has_slow_table || state.habit.is_suspect()
}

/// Claims due tables of this owner for this process, at most [`CLAIMS`], in the order of [`fairness::next_tables`].
pub(in crate::worker) fn claim_next(database: u32, owner: u32, naptime: i64, now: i64) -> Next {
    let me = background::my_pid();
    let busy = Busy::now();
    let mut next = Next {
        claimed: Vec::new(),
        first_due: i64::MAX,
    };
    let workers = settings::max_workers();
    let mut lock = SharedLock::exclusive();
    let admits_slow = fairness::admits_slow(processes::others_in_slow_turns(), workers);
    let (mut tables, mut deaths) = (Vec::new(), 0);
    lock.for_each_mut(|state| {
        if state.key.database != database
            || state.owner != owner
            || !state.is_target()
            || busy.holds(state, me)
        {
            return;
        }
        if state.claimed_by != me && state.claimed_by != 0 {
            state.claimed_by = 0;
            if std::mem::take(&mut state.working) {
                // A worker died at it: treated as a failure, with its pause.
                after_death(state, naptime, now);
                deaths += 1;
            }
        }
        let is_routine = state.schedule.is_routine();
        tables.push((state.schedule.due, state.habit, is_routine, state.key));
    });
    for _ in 0..deaths {
        owners::charge(&mut lock, owner, DEATH, true, now);
    }
    let standing = owners::standing(&lock, owner, now);
    let (mut due_now, mut routine) = (Vec::new(), Vec::new());
    for (due, habit, is_routine, key) in tables {
        let slow = standing.has_slow_table || habit.is_suspect();
        if due > now {
            next.first_due = next.first_due.min(due);
        } else if slow && !admits_slow {
            next.first_due = next.first_due.min(now.saturating_add(NOT_ADMITTED));
        } else {
            next.first_due = next.first_due.min(due);
            match is_routine {
                true => routine.push((due, key)),
                false => due_now.push((due, key)),
            }
        }
    }
    for key in fairness::next_tables(due_now, routine).take(CLAIMS) {
        if let Some(state) = lock.find_mut(&key) {
            state.claimed_by = me;
            next.claimed.push(key);
        }
    }
    next
}

fn after_death(state: &mut TableState, naptime: i64, now: i64) {
    if state.schedule.after_turn(Outcome::Failed, naptime, now) {
        state.progress = Progress::default();
    }
    state.died = true;
    state.failing = true;
    let spent = Spent {
        dawdled: true,
        timed_out: true,
        ..Spent::default()
    };
    state
        .habit
        .after_turn(&spent, settings::statement_timeout());
}

/// Begins this process's turn at a table, and returns the time limit of its transactions; `None` if it has lost its
/// claim, or too many others are at tables of slow owners.
pub(in crate::worker) fn begin_turn(key: TableKey, now: i64) -> Option<Duration> {
    let me = background::my_pid();
    let most = settings::statement_timeout();
    let workers = settings::max_workers();
    let own = processes::own();
    let mut lock = SharedLock::exclusive();
    let others = processes::others_in_slow_turns();
    let owner = lock.find(&key)?.owner;
    let standing = owners::standing(&lock, owner, now);
    let state = lock.find_mut(&key)?;
    if state.claimed_by != me {
        return None;
    }
    let slow = is_slow(state, standing);
    if slow && !fairness::admits_slow(others, workers) {
        state.claimed_by = 0;
        return None;
    }
    state.working = true;
    state.dawdled = false;
    state.schedule.begin_turn(now);
    if let Some(own) = own {
        own.set_turn(key.relid, slow, now);
    }
    Some(state.habit.limit(most))
}

/// Ends this process's turn at a table. True if the table has just been found slow for the first
/// time.
pub(in crate::worker) fn end_turn(
    key: TableKey,
    outcome: Outcome,
    mut spent: Spent,
    now: i64,
) -> bool {
    let naptime = settings::naptime();
    let most = settings::statement_timeout();
    let took = i64::try_from(spent.took.as_micros()).unwrap_or(i64::MAX);
    let own = processes::own();
    let mut lock = SharedLock::exclusive();
    if let Some(own) = own {
        own.clear_turn();
    }
    let Some(state) = lock.find_mut(&key) else {
        return false;
    };
    state.claimed_by = 0;
    state.working = false;
    spent.dawdled |= state.dawdled;
    state.habit.after_turn(&spent, most);
    state.failing &= outcome == Outcome::Failed;
    if state.schedule.after_turn(outcome, naptime, now) {
        // What the turn found belongs to the former policy.
        state.progress = Progress::default();
    } else if state.counters.blocked_rows > 0 {
        // The rows that are left are before the position reached.
        state.schedule.search_again();
    }
    let (owner, slow) = (state.owner, state.habit.slow);
    let first = slow && spent.timed_out && !std::mem::replace(&mut state.habit.said, slow);
    owners::charge(&mut lock, owner, took, slow, now);
    first
}

/// Releases all claims of this process, as if it had not had them.
pub(in crate::worker) fn release_all() {
    let me = background::my_pid();
    SharedLock::exclusive().for_each_mut(|state| abandon(state, me));
}

/// The same of these tables.
pub(in crate::worker) fn release(tables: &[TableKey]) {
    let me = background::my_pid();
    let mut lock = SharedLock::exclusive();
    for key in tables {
        if let Some(state) = lock.find_mut(key) {
            abandon(state, me);
        }
    }
}

fn abandon(state: &mut TableState, me: i32) {
    if state.claimed_by == me {
        state.claimed_by = 0;
        state.working = false;
        state.schedule.abandon_turn();
    }
}

/// An owner in a database: whose tables one worker deletes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::worker) struct Client {
    pub(in crate::worker) database: u32,
    pub(in crate::worker) owner: u32,
}

/// What waits for an owner in a database, apart from what the owner's workers are at.
#[derive(Debug, Clone, Copy)]
pub(in crate::worker) struct Waiting {
    /// When the first table is due that may be worked on.
    pub(in crate::worker) first_due: i64,
    /// How many are due.
    pub(in crate::worker) due: usize,
    /// The owner's rank.
    pub(in crate::worker) rank: i64,
}

/// What waits, after these writes.
pub(in crate::worker) fn waiting(
    written: &HashMap<usize, Writes>,
    now: i64,
) -> HashMap<Client, Waiting> {
    let busy = Busy::now();
    let workers = settings::max_workers();
    let mut waiting: HashMap<Client, Waiting> = HashMap::new();
    let mut suspects = Vec::new();
    let mut lock = SharedLock::exclusive();
    let admits_slow = fairness::admits_slow(processes::others_in_slow_turns(), workers);
    lock.for_each_mut(|state| {
        let mark = shared::mark_number(state.key.database, state.labelled_table);
        if let Some(&writes) = written.get(&mark).filter(|_| state.is_target()) {
            state.schedule.after_writes(writes, state.shortest, now);
        }
        let due = state.schedule.due;
        // One whose worker has died in the middle of a turn waits, too: the next worker notices.
        if !state.is_target() || due == i64::MAX || busy.holds(state, 0) {
            return;
        }
        let client = Client {
            database: state.key.database,
            owner: state.owner,
        };
        let entry = waiting.entry(client).or_insert_with(|| Waiting {
            first_due: i64::MAX,
            due: 0,
            rank: 0,
        });
        if due <= now && !admits_slow && state.habit.is_suspect() {
            suspects.push(client);
            return;
        }
        entry.first_due = entry.first_due.min(due);
        entry.due += usize::from(due <= now);
    });
    for client in suspects {
        if let Some(entry) = waiting.get_mut(&client) {
            entry.first_due = entry.first_due.min(now.saturating_add(NOT_ADMITTED));
        }
    }
    for (client, entry) in &mut waiting {
        let standing = owners::standing(&lock, client.owner, now);
        entry.rank = standing.rank;
        if standing.has_slow_table && !admits_slow && entry.due > 0 {
            entry.due = 0;
            entry.first_due = now.saturating_add(NOT_ADMITTED);
        }
    }
    waiting
}

/// Notes whether processes of the owner can be started; if not, its due tables wait, and say so.
pub(in crate::worker) fn note_startable(client: Client, startable: bool) {
    SharedLock::exclusive().for_each_mut(|state| {
        if state.key.database == client.database && state.owner == client.owner {
            state.unstartable = !startable;
        }
    });
}

/// Makes every table be scanned anew: the wall clock was set, so rows expire at other times than the
/// schedule expects.
pub(in crate::worker) fn scan_all() {
    SharedLock::exclusive().for_each_mut(|state| {
        if state.is_target() {
            state.schedule.now();
            if !state.working {
                state.progress = Progress::default();
            }
        }
    });
}

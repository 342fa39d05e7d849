//! Which worker works on which table. In shared memory, under the lock.

use super::SharedLock;
use super::processes;
pub(in crate::worker) use super::processes::Client;
use super::state::{Progress, TableKey, TableState};
use crate::pg::server::background;
use crate::settings;
use crate::worker::queue::fairness::{self, Spent};
use crate::worker::queue::schedule::{Outcome, Writes};
use crate::worker::shared;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The most tables that a worker lists at a time: to search for them goes through all tables.
const LISTED: usize = 512;
/// Routine looks wait for tables that have become due up to so much later, and no longer.
const ROUTINE_WAITS: i64 = 1_000_000;
/// After this time, tables are looked at again that wait because too many workers are at slow ones.
const NOT_ADMITTED: i64 = 1_000_000;

/// An owner's tables, for one of the owner's workers.
pub(in crate::worker) struct DueTables {
    /// Those that are due and that no worker is at, the first to be served first.
    pub(in crate::worker) tables: Vec<TableKey>,
    /// When the first table is due that no worker is at.
    pub(in crate::worker) first_due: i64,
}

/// The worker that is in a turn at the table.
pub(super) fn worker_at(state: &TableState) -> Option<i32> {
    if !state.is_in_turn() {
        return None;
    }
    let mut workers = processes::workers_in(state.key.database);
    let worker = workers.find(|it| it.report.table() == Some(state.key.relid))?;
    Some(worker.pid.load(Ordering::Acquire)).filter(|&pid| background::is_alive(pid))
}

/// Whether one more worker may have a turn at a slow table.
fn admits_slow() -> bool {
    fairness::admits_slow(processes::others_in_slow_turns(), settings::max_workers())
}

/// When the table is due, or is to be looked at again since no more workers may be at slow tables now.
fn admitted_at(state: &TableState, admits_slow: bool, now: i64) -> i64 {
    let due = state.schedule.due;
    match due <= now && !admits_slow && state.habit.is_suspect() {
        true => now.saturating_add(NOT_ADMITTED),
        false => due,
    }
}

/// Lists due tables of this owner, at most [`LISTED`], of which this process is at none. None is claimed before its turn,
/// so that the owner's other workers may take them, too.
pub(in crate::worker) fn due_tables(
    database: u32,
    owner: u32,
    naptime: i64,
    now: i64,
) -> DueTables {
    let mut lock = SharedLock::exclusive();
    let admits_slow = admits_slow();
    let (mut due_now, mut first_due) = (Vec::new(), i64::MAX);
    lock.for_each_mut(|state| {
        if state.key.database != database
            || state.owner != owner
            || !state.is_target()
            || worker_at(state).is_some()
        {
            return;
        }
        if state.is_in_turn() {
            // A worker died at it: treated as a failure, with its pause.
            after_death(state, naptime, now);
        }
        let due = admitted_at(state, admits_slow, now);
        first_due = first_due.min(due);
        if due <= now {
            let wait = i64::from(state.schedule.is_routine()) * ROUTINE_WAITS;
            due_now.push((due.saturating_add(wait), state.key));
        }
    });
    due_now.sort_by_key(|&(since, _)| since);
    due_now.truncate(LISTED);
    DueTables {
        tables: due_now.into_iter().map(|(_, key)| key).collect(),
        first_due,
    }
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

/// Begins this process's turn at a table, and returns the time limit of its transactions; `None` if another process is at
/// it or has had its turn, or too many others are at slow tables.
pub(in crate::worker) fn begin_turn(key: TableKey, now: i64) -> Option<Duration> {
    let most = settings::statement_timeout();
    let own = processes::own();
    let mut lock = SharedLock::exclusive();
    let admits_slow = admits_slow();
    let state = lock.find_mut(&key)?;
    // One whose worker has died is listed first.
    if state.is_in_turn() || !state.is_target() || admitted_at(state, admits_slow, now) > now {
        return None;
    }
    state.dawdled = false;
    state.schedule.begin_turn(now);
    if let Some(own) = own {
        own.set_turn(key.relid, state.habit.is_suspect(), now);
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
    let own = processes::own();
    let mut lock = SharedLock::exclusive();
    if let Some(own) = own {
        own.end_turn(spent.took);
    }
    let Some(state) = lock.find_mut(&key) else {
        return false;
    };
    spent.dawdled |= state.dawdled;
    state.habit.after_turn(&spent, most);
    state.failing &= [Outcome::Failed, Outcome::Requested].contains(&outcome);
    if state.schedule.after_turn(outcome, naptime, now) {
        // What the turn found belongs to the former policy.
        state.progress = Progress::default();
    } else if state.counters.blocked_rows > 0 {
        // The rows that are left are before the position reached.
        state.schedule.search_again();
    }
    let slow = state.habit.slow;
    slow && spent.timed_out && !std::mem::replace(&mut state.habit.said, slow)
}

/// Gives up the turn of this process, as if it had not had it.
pub(in crate::worker) fn release() {
    let own = processes::own().and_then(|own| Some((own.client().database, own.report.table()?)));
    if let Some((database, relid)) = own
        && let Some(state) = SharedLock::exclusive().find_mut(&TableKey { database, relid })
    {
        state.schedule.abandon_turn();
    }
}

/// What waits for an owner in a database, apart from what the owner's workers are at.
#[derive(Debug, Clone, Copy)]
pub(in crate::worker) struct Waiting {
    /// When the first table is due that may be worked on.
    pub(in crate::worker) first_due: i64,
    /// How many are due.
    pub(in crate::worker) due: usize,
}

/// What waits, after these writes.
pub(in crate::worker) fn waiting(
    written: &HashMap<usize, Writes>,
    now: i64,
) -> HashMap<Client, Waiting> {
    let mut waiting: HashMap<Client, Waiting> = HashMap::new();
    let mut lock = SharedLock::exclusive();
    let admits_slow = admits_slow();
    lock.for_each_mut(|state| {
        let mark = shared::mark_number(state.key.database, state.labelled_table);
        if let Some(&writes) = written.get(&mark).filter(|_| state.is_target()) {
            state.schedule.after_writes(writes, state.shortest, now);
        }
        let due = admitted_at(state, admits_slow, now);
        // One whose worker has died in the middle of a turn waits, too: the next worker notices.
        if !state.is_target() || due == i64::MAX || worker_at(state).is_some() {
            return;
        }
        let client = Client {
            database: state.key.database,
            owner: state.owner,
        };
        let entry = waiting.entry(client).or_insert_with(|| Waiting {
            first_due: i64::MAX,
            due: 0,
        });
        entry.first_due = entry.first_due.min(due);
        entry.due += usize::from(due <= now);
    });
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
            if !state.is_in_turn() {
                state.progress = Progress::default();
            }
        }
    });
}

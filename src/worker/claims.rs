//! Which worker works on which table. In shared memory, under the lock.

use super::fairness::{self, Spent};
use super::owners;
use super::schedule::Outcome;
use super::shared::{self, Locked};
use super::state::{Progress, TableKey, TableState};
use crate::pg::background;
use crate::settings;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The most tables that a worker claims at a time: to search for them goes through all tables.
const CLAIMS: usize = 128;
/// After this time, tables are looked at again that wait because too many workers are at tables
/// of slow owners.
const NOT_ADMITTED: i64 = 1_000_000;

/// The time charged to an owner whose code has ended a worker, in microseconds: about what it
/// took, and the start of another.
const DEATH: i64 = 3_000_000;

/// The result of [`claim_next`].
pub(super) struct Next {
    pub(super) claimed: Vec<TableKey>,
    /// When the first table is due that no other worker has.
    pub(super) first_due: i64,
    /// How many are due.
    pub(super) due: u32,
    /// All of these belong to slow owners.
    pub(super) only_slow: bool,
}

/// Workers that are at one table for long: anybody may take the other tables they have claimed.
struct Busy(Vec<i32>);

impl Busy {
    fn now() -> Self {
        let workers = shared::control().workers.iter();
        let long = workers.filter(|worker| worker.long.load(Ordering::Acquire));
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

/// Claims due tables for this process: first those of owners who have used least time lately,
/// then those due for longest. It takes a share that leaves some to others, at most `CLAIMS`.
pub(super) fn claim_next(database: u32, naptime: i64, now: i64) -> Next {
    let me = background::my_pid();
    let busy = Busy::now();
    let mut due_now = Vec::new();
    let mut next = Next {
        claimed: Vec::new(),
        first_due: i64::MAX,
        due: 0,
        only_slow: true,
    };
    let workers = settings::max_workers();
    let mut lock = Locked::exclusive();
    let admits_slow = fairness::admits_slow(shared::others_in_slow_turns(), workers);
    let (mut tables, mut died) = (Vec::new(), Vec::new());
    lock.for_each_mut(|state| {
        if state.key.database != database || busy.holds(state, me) {
            return;
        }
        if state.claimed_by != me && state.claimed_by != 0 {
            state.claimed_by = 0;
            if std::mem::take(&mut state.working) {
                // A worker died at it: treated as a failure, with its pause.
                after_death(state, naptime, now);
                died.push(state.owner);
            }
        }
        tables.push((state.schedule.due, state.owner, state.habit, state.key));
    });
    for owner in died {
        owners::charge(&mut lock, owner, DEATH, true, now);
    }
    for (due, owner, habit, key) in tables {
        if due > now {
            next.first_due = next.first_due.min(due);
            continue;
        }
        let standing = owners::standing(&lock, owner, now);
        let slow = standing.has_slow_table || habit.is_suspect();
        if slow && !admits_slow {
            let again = now.saturating_add(NOT_ADMITTED);
            next.first_due = next.first_due.min(again);
            continue;
        }
        next.first_due = next.first_due.min(due);
        next.only_slow &= slow;
        due_now.push((standing.rank, due, key));
    }
    next.due = u32::try_from(due_now.len()).unwrap_or(u32::MAX);
    fairness::order(&mut due_now);
    let share = due_now.len().div_ceil(4).min(CLAIMS);
    for (_, _, key) in due_now.into_iter().take(share) {
        if let Some(state) = lock.find_mut(&key) {
            state.claimed_by = me;
            next.claimed.push(key);
        }
    }
    next
}

fn after_death(state: &mut TableState, naptime: i64, now: i64) {
    if state.schedule.after_turn(Outcome::Failed, naptime, now) {
        state.progress = Progress::new();
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

/// The time limits of a turn's transactions: the longest, and after which they give way.
pub(super) struct Limits {
    pub(super) each: Duration,
    pub(super) patience: Duration,
}

/// Begins this process's turn at a table; `None` if it has lost its claim, or too many others
/// are at tables of slow owners.
pub(super) fn begin_turn(key: TableKey, now: i64) -> Option<Limits> {
    let me = background::my_pid();
    let most = settings::statement_timeout();
    let workers = settings::max_workers();
    let own = shared::own();
    let mut lock = Locked::exclusive();
    let others = shared::others_in_slow_turns();
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
    state.schedule.begin_turn();
    if let Some(own) = own {
        own.set_turn(key.relid, slow, now);
    }
    Some(Limits {
        each: state.habit.limit(most),
        patience: state.habit.patience(most),
    })
}

/// Ends this process's turn at a table. True if the table has just been found slow for the first
/// time.
pub(super) fn end_turn(key: TableKey, outcome: Outcome, mut spent: Spent, now: i64) -> bool {
    let naptime = settings::naptime();
    let most = settings::statement_timeout();
    let took = i64::try_from(spent.took.as_micros()).unwrap_or(i64::MAX);
    let own = shared::own();
    let mut lock = Locked::exclusive();
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
        state.progress = Progress::new();
    } else if state.counters.blocked_rows > 0 {
        // The rows that are left are before the position reached.
        state.schedule.search_again();
    }
    let (owner, slow) = (state.owner, state.habit.slow);
    let first = slow && spent.timed_out && !std::mem::replace(&mut state.habit.said, slow);
    owners::charge(&mut lock, owner, took, slow, now);
    first
}

/// Notes the table's owner.
pub(super) fn set_owner(key: TableKey, owner: u32) {
    super::state::with_table(key, |state| state.owner = owner);
}

/// Releases this process's claims, as if it had not had them.
pub(super) fn release_claims() {
    let me = background::my_pid();
    Locked::exclusive().for_each_mut(|state| {
        if state.claimed_by == me {
            state.claimed_by = 0;
            state.working = false;
            state.schedule.abandon_turn();
        }
    });
}

/// What waits in a database, apart from what its workers are at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    /// When the first table is due that may be worked on.
    pub(super) first_due: i64,
    /// The lowest rank among the owners of due tables; 0 if none is known to be due: then
    /// somebody has written, or changed a policy.
    pub(super) rank: i64,
}

/// What waits, by database.
pub(super) fn waiting(now: i64) -> HashMap<u32, Waiting> {
    let busy = Busy::now();
    let workers = settings::max_workers();
    let mut tables = Vec::new();
    let lock = Locked::shared();
    let admits_slow = fairness::admits_slow(shared::others_in_slow_turns(), workers);
    lock.for_each(|state| {
        if !busy.holds(state, 0) && !state.working {
            tables.push((
                state.key.database,
                state.schedule.due,
                state.owner,
                state.habit,
            ));
        }
    });
    let mut waiting: HashMap<u32, Waiting> = HashMap::new();
    for (database, due, owner, habit) in tables {
        let entry = waiting.entry(database).or_insert(Waiting {
            first_due: i64::MAX,
            rank: i64::MAX,
        });
        if due > now {
            entry.first_due = entry.first_due.min(due);
            continue;
        }
        let standing = owners::standing(&lock, owner, now);
        let slow = standing.has_slow_table || habit.is_suspect();
        if slow && !admits_slow {
            entry.first_due = entry.first_due.min(now.saturating_add(NOT_ADMITTED));
        } else {
            entry.first_due = entry.first_due.min(due);
            entry.rank = entry.rank.min(standing.rank);
        }
    }
    for (database, entry) in &mut waiting {
        let told = shared::database(*database).is_some_and(shared::Database::is_told);
        if told || entry.first_due > now.saturating_add(NOT_ADMITTED) {
            entry.rank = 0;
        }
    }
    waiting
}

//! What is known of each table and partition: its place in the schedule, how far
//! its deletion is, and what has been counted. In shared memory, under the lock.

use super::schedule::{Outcome, Plan};
use super::shared;
use crate::pg::background;
use crate::pg::receiver::Found;
use crate::pg::shmem::Locked;

/// The most tables that a worker claims at a time: the search for them goes
/// through all there are.
const CLAIMS: usize = 128;
/// So many rules of a table have their place kept; further ones are searched from the
/// beginning.
pub(super) const LANES: usize = 16;
/// The longest error text that is kept, in bytes.
const ERROR_TEXT: usize = 300;

/// The key of a table's state.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableKey {
    pub(crate) database: u32,
    pub(crate) relid: u32,
}

/// What is known and counted of a table or partition. Under the lock.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct TableState {
    pub(crate) key: TableKey,
    /// The table that carries the policy.
    pub(crate) holder: u32,
    /// The worker that is at it; 0 for none.
    pub(super) claimed_by: i32,
    /// Stands for the policy that the rest was found under.
    pub(super) fingerprint: u64,
    pub(super) plan: Plan,
    pub(super) progress: Progress,
    pub(crate) counters: Counters,
    pub(super) warned_restored: bool,
    /// Before this no attempt is made to drop the partition as a whole.
    pub(super) not_whole_before: i64,
    /// A turn is going on.
    pub(super) working: bool,
    /// The worker that was at it died in the middle of a turn.
    pub(super) died: bool,
    /// The only row of the batch that is going on.
    pub(super) single: Option<Found>,
    error_len: u16,
    error: [u8; ERROR_TEXT],
}

/// How far the deletion in a table is.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    /// The size of the next batch.
    pub(super) batch: u32,
    /// The next block of a sweep in heap order; -1 = none is going on.
    pub(super) next_block: i64,
    /// Where that sweep ends.
    pub(super) end_block: i64,
    /// Only rows after this one of the next block.
    pub(super) next_offset: u16,
    /// How many blocks a batch of that sweep reads.
    pub(super) blocks: i64,
    /// For each lane: keys below have been dealt with.
    low: [i64; LANES],
    /// The lane that the next turn begins with (M9),
    pub(super) first_lane: u16,
    /// and how many before it, one after another, have come to their end in this pass.
    pub(super) lanes_done: u16,
    /// When the pass that is going on began; 0 = none.
    pub(super) pass_began: i64,
    /// Rows deleted in it.
    pub(super) pass_rows: u64,
    /// It began at the very beginning of the indexes, and has found no row yet.
    pub(super) full_search: bool,
    /// It has been decided in which way to go on.
    pub(super) estimated: bool,
    /// Rows that were found locked in it, or could not be set aside,
    pub(super) locked: u64,
    /// and when the first of those expired; 0 = not known.
    pub(super) oldest_locked: i64,
    /// It has begun a sweep in heap order,
    pub(super) swept: bool,
    /// at this time.
    pub(super) sweep_began: i64,
    /// Rows inserted and updated in the table, by its statistics, at the last look
    /// that found nothing more to do; -1 = not known.
    pub(super) writes_seen: i64,
    /// When the next row expires, as that look has found.
    pub(super) next_expiry: i64,
}

/// What `ttl.stats` shows.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counters {
    pub(crate) rows_deleted: i64,
    pub(crate) batches: i64,
    pub(crate) passes: i64,
    pub(crate) sub_passes: i64,
    pub(crate) partitions_dropped: i64,
    pub(crate) last_pass_at: i64,
    pub(crate) last_pass_ms: f64,
    /// When the oldest row expired (or will) that is still on disk; 0 = unknown.
    pub(crate) oldest_expiry: i64,
    pub(crate) backlog: i64,
    pub(crate) blocked_rows: i64,
    pub(crate) last_error_at: i64,
}

impl Counters {
    /// Adds another table's.
    pub(crate) fn add(&mut self, other: &Self) {
        self.rows_deleted += other.rows_deleted;
        self.batches += other.batches;
        self.passes += other.passes;
        self.sub_passes += other.sub_passes;
        self.partitions_dropped += other.partitions_dropped;
        if other.last_pass_at > self.last_pass_at {
            self.last_pass_at = other.last_pass_at;
            self.last_pass_ms = other.last_pass_ms;
        }
    }
}

impl TableState {
    /// The last error's text.
    pub(crate) fn error(&self) -> Option<String> {
        let bytes = self.error.get(..usize::from(self.error_len))?;
        (!bytes.is_empty()).then(|| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Keeps an error's text, cut at a character's boundary.
    pub(super) fn set_error(&mut self, text: &str) {
        let mut end = text.len().min(ERROR_TEXT);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        for (to, from) in self.error.iter_mut().zip(&text.as_bytes()[..end]) {
            *to = *from;
        }
        self.error_len = u16::try_from(end).unwrap_or(0);
    }
}

/// Works on a table's state, under the lock; `None` if there is none. `work`
/// must not do anything that can raise an error.
pub(super) fn with_table<T>(key: TableKey, work: impl FnOnce(&mut TableState) -> T) -> Option<T> {
    let mut lock = Locked::exclusive();
    // SAFETY: the types whose sizes `init` asks for; the reference ends before the lock.
    unsafe { lock.find::<_, TableState>(&key) }.map(work)
}

/// Makes sure that a table has a state; false if there is no room.
pub(super) fn ensure_table(key: TableKey, holder: u32, fingerprint: u64) -> bool {
    let mut lock = Locked::exclusive();
    // SAFETY: as in `with_table`.
    let Some((state, found)) = (unsafe { lock.enter::<_, TableState>(&key) }) else {
        return false;
    };
    if !found {
        *state = TableState {
            key,
            holder,
            claimed_by: 0,
            fingerprint,
            plan: Plan::new(),
            progress: Progress::new(),
            counters: Counters::default(),
            warned_restored: false,
            not_whole_before: 0,
            working: false,
            died: false,
            single: None,
            error_len: 0,
            error: [0; ERROR_TEXT],
        };
    }
    true
}

/// Forgets the tables for which `gone` says so, and their blocked rows.
pub(super) fn remove_tables(gone: impl Fn(&TableState) -> bool) {
    let mut keys = Vec::new();
    let mut lock = Locked::exclusive();
    // SAFETY: as in `with_table`; entries are removed after the scan.
    unsafe {
        lock.for_each::<TableState>(|state| {
            if gone(state) {
                keys.push(state.key);
            }
        });
        for key in &keys {
            lock.remove(key);
        }
        for row in &mut *shared::control().blocked.get() {
            if keys.contains(&row.table) {
                row.table.database = 0;
            }
        }
    }
}

/// Forgets what is no longer to be swept in a database. What was counted is
/// kept with the table that carries the policy, as long as that is there.
pub(super) fn remove_targets(
    database: u32,
    is_target: impl Fn(u32) -> bool,
    is_holder: impl Fn(u32) -> bool,
) {
    let gone = |state: &TableState| state.key.database == database && !is_target(state.key.relid);
    let is_sum = |state: &TableState| is_holder(state.key.relid);
    let gone = |state: &TableState| gone(state) && state.claimed_by == 0;
    for state in tables_of(database) {
        if gone(&state) && !is_sum(&state) && is_holder(state.holder) {
            with_sum(database, state.holder, |sum| {
                sum.counters.add(&state.counters)
            });
        }
    }
    remove_tables(|state| gone(state) && !is_sum(state));
    let mut lock = Locked::exclusive();
    // SAFETY: as in `with_table`.
    unsafe {
        lock.for_each::<TableState>(|state| {
            if gone(state) {
                state.plan.never();
                state.fingerprint = 0;
            }
        });
    }
}

/// Works on the state of a table that carries a policy, where the counters of what is
/// gone are kept; it need not be swept itself.
fn with_sum(database: u32, holder: u32, work: impl FnOnce(&mut TableState)) {
    let key = TableKey {
        database,
        relid: holder,
    };
    if ensure_table(key, holder, 0) {
        with_table(key, |sum| {
            if sum.fingerprint == 0 {
                sum.plan.never();
            }
            work(sum);
        });
    }
}

/// Forgets a partition that this process has dropped, and counts it.
pub(super) fn forget_dropped(key: TableKey, holder: u32) {
    let counted = with_table(key, |state| state.counters).unwrap_or_default();
    remove_tables(|state| state.key == key);
    with_sum(key.database, holder, |sum| {
        sum.counters.add(&counted);
        sum.counters.partitions_dropped += 1;
    });
}

/// Whether this is the first time that somebody asks about a restored table.
pub(super) fn warn_restored(key: TableKey) -> bool {
    ensure_table(key, key.relid, 0)
        && with_table(key, |state| {
            state.plan.never();
            !std::mem::replace(&mut state.warned_restored, true)
        }) == Some(true)
}

/// Claims tables that are due, for this process: those that have been for the
/// longest time, a share of all that leaves some to others, `CLAIMS` at most. Gives
/// also when the first table is due that nobody has claimed, and how many are due.
pub(super) fn claim_next(database: u32, naptime: i64, now: i64) -> Next {
    let me = background::my_pid();
    let mut due_now = Vec::new();
    let mut next = Next {
        claimed: Vec::new(),
        first_due: i64::MAX,
        due: 0,
    };
    let mut lock = Locked::exclusive();
    // SAFETY: as in `with_table`.
    unsafe {
        lock.for_each::<TableState>(|state| {
            if state.key.database != database {
                return;
            }
            if state.claimed_by != 0 && state.claimed_by != me {
                if background::is_alive(state.claimed_by) {
                    return;
                }
                state.claimed_by = 0;
                if std::mem::take(&mut state.working) {
                    // Its worker died at it: like a failure, with its pause.
                    state.plan.after_turn(Outcome::Failed, naptime, now);
                    state.died = true;
                }
            }
            let due = state.plan.due;
            next.first_due = next.first_due.min(due);
            if due <= now {
                due_now.push((due, state.key));
            }
        });
        next.due = u32::try_from(due_now.len()).unwrap_or(u32::MAX);
        due_now.sort_unstable_by_key(|(due, _)| *due);
        let share = due_now.len().div_ceil(4).min(CLAIMS);
        for (_, key) in due_now.into_iter().take(share) {
            if let Some(state) = lock.find::<_, TableState>(&key) {
                state.claimed_by = me;
                next.claimed.push(key);
            }
        }
    }
    next
}

/// Lets go of what this process has claimed, as if it had done nothing.
pub(super) fn release_claims() {
    let me = background::my_pid();
    let mut lock = Locked::exclusive();
    // SAFETY: as in `with_table`.
    unsafe {
        lock.for_each::<TableState>(|state| {
            if state.claimed_by == me {
                state.claimed_by = 0;
                state.working = false;
            }
        });
    }
}

/// What [`claim_next`] has found.
pub(super) struct Next {
    pub(super) claimed: Vec<TableKey>,
    pub(super) first_due: i64,
    pub(super) due: u32,
}

/// A copy of the states of a database's tables.
pub(crate) fn tables_of(database: u32) -> Vec<TableState> {
    let mut states = Vec::new();
    let mut lock = Locked::shared();
    // SAFETY: as in `with_table`; only read.
    unsafe {
        lock.for_each::<TableState>(|state| {
            if state.key.database == database {
                states.push(*state);
            }
        });
    }
    states
}

impl Progress {
    pub(super) const fn new() -> Self {
        Self {
            batch: 0,
            next_block: -1,
            end_block: 0,
            next_offset: 0,
            blocks: 0,
            low: [i64::MIN; LANES],
            first_lane: 0,
            lanes_done: 0,
            pass_began: 0,
            pass_rows: 0,
            full_search: false,
            estimated: false,
            locked: 0,
            oldest_locked: 0,
            swept: false,
            sweep_began: 0,
            writes_seen: -1,
            next_expiry: 0,
        }
    }
}

impl Progress {
    /// Keys of the lane below this have been dealt with.
    pub(super) fn low(&self, lane: usize) -> i64 {
        self.low.get(lane).copied().unwrap_or(i64::MIN)
    }

    /// Notes how far a lane is, if there is a place for it.
    pub(super) fn set_low(&mut self, lane: usize, key: i64) {
        if let Some(low) = self.low.get_mut(lane) {
            *low = key;
        }
    }

    /// A pass begins, from where the last one stopped or from the very beginning.
    pub(super) fn begin_pass(&mut self, now: i64, full: bool) {
        *self = Self {
            batch: self.batch,
            low: if full { [i64::MIN; LANES] } else { self.low },
            pass_began: now,
            full_search: full,
            ..Self::new()
        };
    }
}

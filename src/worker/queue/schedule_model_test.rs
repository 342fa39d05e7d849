//! C7: no event is lost, in whatever order things happen: all sequences of six events at two
//! tables, with two workers.

use super::schedule::Writes;
use super::schedule::{Outcome, Schedule};

const SECOND: i64 = 1_000_000;
const NAP: i64 = 60 * SECOND;
const START: i64 = 1_000_000 * SECOND;

#[derive(Debug, Clone, Copy)]
enum Event {
    /// Rows that have expired already come to a table.
    Written(usize),
    /// A worker begins a turn at the table that is due first, and sees everything there.
    Began(usize),
    /// The search from the beginning is done, in the worker's turn.
    Searched(usize),
    Ended(usize, Outcome),
    PolicyChanged(usize),
    /// A session waits for a row.
    Requested(usize),
    Time,
}

#[derive(Debug, Clone, Copy)]
struct Table {
    schedule: Schedule,
    /// Something is there that no complete pass has met.
    unseen: bool,
    /// It was there when the current turn began.
    seen: bool,
    /// A search from the very beginning has been made since it was there.
    searched: bool,
    /// How long it may have to wait: failures and locked rows cause pauses.
    patience: i64,
}

impl Table {
    /// Rows that are expired already have come to it.
    fn comes(&mut self) {
        self.unseen = true;
        self.seen = false;
        self.searched = false;
    }
}

#[derive(Debug, Clone, Copy)]
struct Model {
    now: i64,
    tables: [Table; 2],
    /// The table that each worker is at.
    at: [Option<usize>; 2],
}

impl Model {
    fn new() -> Self {
        let mut schedule = Schedule::default();
        schedule.begin_turn(START);
        schedule.after_full_search(0, START);
        let done = Outcome::Done {
            next_expiry: None,
            leftover: false,
            interval: 0,
        };
        schedule.after_turn(done, NAP, START);
        let table = Table {
            schedule,
            unseen: false,
            seen: false,
            searched: false,
            patience: SECOND,
        };
        Self {
            now: START + 2 * SECOND,
            tables: [table; 2],
            at: [None; 2],
        }
    }

    /// False if it cannot happen now.
    fn apply(&mut self, event: Event) -> bool {
        let now = self.now;
        match event {
            Event::Written(table) => {
                let writes = Writes {
                    any: true,
                    kept_ts: true,
                };
                self.tables[table]
                    .schedule
                    .after_writes(writes, SECOND, now);
                self.tables[table].comes();
            }
            Event::PolicyChanged(table) => {
                self.tables[table].schedule.now();
                self.tables[table].comes();
                self.tables[table].patience = SECOND;
            }
            Event::Requested(table) => self.tables[table].schedule.request(now),
            Event::Time => self.now += SECOND,
            Event::Began(worker) => {
                let other = self.at[1 - worker];
                let free = |table: &usize| Some(*table) != other;
                let due = |&table: &usize| self.tables[table].schedule.due;
                let first = (0..2).filter(free).min_by_key(due);
                let Some(first) = first.filter(|table| due(table) <= now) else {
                    return false;
                };
                if self.at[worker].is_some() {
                    return false;
                }
                self.at[worker] = Some(first);
                let table = &mut self.tables[first];
                table.schedule.begin_turn(now);
                table.seen = true;
            }
            Event::Searched(worker) => {
                let Some(at) = self.at[worker] else {
                    return false;
                };
                let table = &mut self.tables[at];
                table.schedule.after_full_search(0, now);
                table.searched |= table.seen;
            }
            Event::Ended(worker, outcome) => {
                let Some(at) = self.at[worker] else {
                    return false;
                };
                let table = &mut self.tables[at];
                // Such a turn searches nothing.
                let may_be_requested = !table.searched && table.schedule.is_only_requested(now);
                if outcome == Outcome::Requested && !may_be_requested {
                    return false;
                }
                self.at[worker] = None;
                let void = table.schedule.after_turn(outcome, NAP, now);
                let (done, delayed) = match outcome {
                    Outcome::Done { leftover, .. } => (true, leftover),
                    Outcome::Failed | Outcome::Resting { .. } => (false, true),
                    Outcome::Unfinished => (false, false),
                    // Nothing was looked through, and the next look is due as before.
                    Outcome::Requested => {
                        table.seen = false;
                        return true;
                    }
                };
                if done && table.searched && !void {
                    table.unseen = false;
                }
                table.patience = if delayed && !void { NAP } else { SECOND };
                table.seen = false;
            }
        }
        true
    }

    /// What is unseen is due in time, from the beginning: the launcher starts or wakes a worker then.
    fn check(&self, history: &[Event]) {
        for (number, table) in self.tables.iter().enumerate() {
            if !table.unseen || self.at.contains(&Some(number)) {
                continue;
            }
            let due = table.schedule.due;
            assert!(due <= self.now + table.patience, "late: {history:?}");
            assert!(
                table.searched || table.schedule.begins_full(NAP, due.max(self.now)),
                "not from the beginning: {history:?}"
            );
        }
    }
}

#[test]
fn no_order_of_events_loses_one() {
    let outcomes = [
        Outcome::Unfinished,
        Outcome::Failed,
        Outcome::Requested,
        Outcome::Resting {
            until: START + 30 * SECOND,
            interval: 0,
        },
        Outcome::Done {
            next_expiry: None,
            leftover: false,
            interval: 0,
        },
        Outcome::Done {
            next_expiry: Some(START + 30 * SECOND),
            leftover: true,
            interval: 0,
        },
    ];
    let mut events = vec![Event::Time];
    for n in 0..2 {
        events.extend([
            Event::Written(n),
            Event::PolicyChanged(n),
            Event::Requested(n),
            Event::Began(n),
            Event::Searched(n),
        ]);
        events.extend(outcomes.map(|outcome| Event::Ended(n, outcome)));
    }
    let mut checked = 0_u64;
    all(&events, Model::new(), &mut Vec::new(), 6, &mut checked);
    assert!(checked > 10_000, "{checked}");
}

fn all(events: &[Event], model: Model, history: &mut Vec<Event>, left: u32, checked: &mut u64) {
    model.check(history);
    *checked += 1;
    if left == 0 {
        return;
    }
    for &event in events {
        let mut next = model;
        if next.apply(event) {
            history.push(event);
            all(events, next, history, left - 1, checked);
            history.pop();
        }
    }
}

//! Sessions' writes, taken into the schedule by the launcher.
//!
//! A mark stands for the tables of a database whose numbers fall on it. To find them without going
//! through all tables at each write, the launcher keeps them in order, and reads them anew when a
//! scheduler has read the policies.

use super::state::{self, TableKey};
use super::wakeups;
use super::{Database, SharedLock};
use crate::worker::queue::schedule::Writes;
use crate::worker::shared;
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// A table, as far as writes matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::worker) struct Marked {
    pub(in crate::worker) mark: usize,
    pub(in crate::worker) relid: u32,
    /// How soon a row that is written now can be deleted, in microseconds.
    pub(in crate::worker) shortest: i64,
}

/// The tables of a database, by their marks.
#[derive(Default)]
struct Marks {
    /// The count of loads of the policies when these were read.
    loads: Option<u32>,
    by_mark: Vec<Marked>,
    /// The count of writes when the marks were last taken,
    writes: Option<u32>,
    /// and of urgent ones.
    urgent: Option<u32>,
}

/// The marks of all databases.
#[derive(Default)]
pub(in crate::worker) struct AllMarks(HashMap<u32, Marks>);

impl AllMarks {
    /// Takes all writes into the schedule. True if some were urgent: more may follow soon.
    pub(in crate::worker) fn take(&mut self, now: i64) -> bool {
        let mut fresh = false;
        for (database, slot) in shared::databases() {
            let marks = self.0.entry(database).or_default();
            fresh |= marks.take(database, slot, now);
        }
        fresh
    }

    /// Whether there are urgent writes that have not been taken.
    pub(in crate::worker) fn are_behind(&self) -> bool {
        shared::databases().any(|(database, slot)| {
            let taken = self.0.get(&database).and_then(|marks| marks.urgent);
            taken != Some(slot.urgent.load(Ordering::SeqCst))
        })
    }

    /// Forgets databases that are gone.
    pub(in crate::worker) fn retain(&mut self, is_there: impl Fn(u32) -> bool) {
        self.0.retain(|&database, _| is_there(database));
    }
}

impl Marks {
    fn take(&mut self, database: u32, slot: &Database, now: i64) -> bool {
        // The urgent ones first: a session that writes counts them last, so that none is taken for
        // seen whose mark is not.
        let urgent = slot.urgent.load(Ordering::SeqCst);
        let writes = slot.writes.load(Ordering::SeqCst);
        let loads = slot.loads.load(Ordering::Acquire);
        let is_loaded = self.loads.replace(loads) != Some(loads);
        if is_loaded {
            self.read(database);
        }
        if self.writes.replace(writes) != Some(writes) || is_loaded {
            each_written(&self.by_mark, wakeups::take, |table, writes| {
                let relid = table.relid;
                state::with_table(TableKey { database, relid }, |state| {
                    state.schedule.after_writes(writes, table.shortest, now);
                });
            });
        }
        self.urgent
            .replace(urgent)
            .is_some_and(|seen| seen != urgent)
    }

    fn read(&mut self, database: u32) {
        self.by_mark.clear();
        SharedLock::shared().for_each(|state| {
            if state.key.database == database && state.is_target() {
                self.by_mark.push(Marked {
                    mark: shared::mark_number(database, state.labelled_table),
                    relid: state.key.relid,
                    shortest: state.shortest,
                });
            }
        });
        self.by_mark.sort_unstable();
    }
}

/// Calls for each table that was written to. Tables that share a mark count as written to
/// together: `take`, which clears a mark, is called once for each mark.
pub(in crate::worker) fn each_written(
    by_mark: &[Marked],
    take: impl Fn(usize) -> Writes,
    mut tell: impl FnMut(Marked, Writes),
) {
    for sharing in by_mark.chunk_by(|a, b| a.mark == b.mark) {
        let writes = sharing
            .first()
            .map_or(Writes::default(), |table| take(table.mark));
        if writes.any {
            sharing.iter().for_each(|&table| tell(table, writes));
        }
    }
}

//! What sessions announce to the workers at commit, when others can see it: which tables they
//! have written to, and that a policy has changed; and the writes as the launcher takes them.

use super::prepared_transactions;
use super::processes::{self, Kind};
use crate::pg::server::background;
use crate::store::written::{self, ANY, KEPT_TS, Written};
use crate::worker::queue::schedule::Writes;
use crate::worker::shared;
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// From this age on, in microseconds, a transaction's rows are searched for from the very
/// beginning of the index.
pub(in crate::worker) const LONG_TRANSACTION: i64 = 8_000_000;

/// Announces the transaction's writes: it has committed.
pub(crate) fn at_commit() {
    let (noted, changed) = written::take();
    if changed || !noted.is_empty() {
        announce(&noted, changed);
        written::give_back(noted);
    }
}

fn announce(noted: &[Written], changed: bool) {
    let database = background::my_database().to_u32();
    if changed {
        tell_of_change(database);
    }
    if noted.is_empty() {
        return;
    }
    // A long transaction's rows may have expired before its commit.
    let long = background::transaction_age() >= LONG_TRANSACTION;
    let mut wake = false;
    for &Written {
        labelled_table,
        bits,
        soon,
    } in noted
    {
        let bits = if long { bits | KEPT_TS } else { bits };
        let mark = shared::mark(shared::mark_number(database, labelled_table));
        mark.fetch_or(bits, Ordering::SeqCst);
        wake |= soon || long;
    }
    let control = shared::control();
    // After the marks: the launcher takes them if it sees another count.
    control.writes.fetch_add(1, Ordering::SeqCst);
    if !wake {
        return;
    }
    control.urgent.fetch_add(1, Ordering::SeqCst);
    // The launcher sets this flag before it reads the count. Loaded first, as most commits find it
    // down.
    if control.wants_wake.load(Ordering::SeqCst) && control.wants_wake.swap(false, Ordering::SeqCst)
    {
        shared::wake_launcher();
    }
}

/// The transaction has aborted, or was prepared: COMMIT PREPARED announces what that one has written.
pub(crate) fn at_other_end(is_prepared: bool) {
    let (noted, changed) = written::take();
    if is_prepared {
        let tables = noted
            .into_iter()
            .map(|written| (written.labelled_table, written.bits));
        prepared_transactions::keep(tables.chain(changed.then_some((0, 0))));
    }
}

pub(in crate::worker) fn tell_of_change(database: u32) {
    if shared::allot_database(database).is_some() {
        for scheduler in processes::in_database(database).filter(|it| it.is(Kind::Scheduler)) {
            background::wake(scheduler.pid.load(Ordering::Acquire));
        }
        shared::wake_launcher();
    }
}

/// What the launcher has taken so far.
///
/// A mark stands for all tables whose numbers fall on it. A mark of a table that has no state yet is taken for nothing:
/// a table that is entered, or gets another labelled table, is due at once, and searched from the beginning.
#[derive(Default)]
pub(in crate::worker) struct Marks {
    /// The count of writes when the marks were last taken,
    writes: Option<u32>,
    /// and of urgent ones.
    urgent: Option<u32>,
}

impl Marks {
    /// Takes what was written since the last call, by the numbers of the marks; and whether some of it was urgent: more
    /// may follow soon.
    pub(in crate::worker) fn take(&mut self) -> (HashMap<usize, Writes>, bool) {
        let control = shared::control();
        // The urgent ones first: a session that writes counts them last, so that none is taken for
        // seen whose mark is not.
        let urgent = control.urgent.load(Ordering::SeqCst);
        let writes = control.writes.load(Ordering::SeqCst);
        let seen = self.urgent.replace(urgent);
        let is_urgent = seen.is_some_and(|seen| seen != urgent);
        if self.writes.replace(writes) == Some(writes) {
            return (HashMap::new(), is_urgent);
        }
        let marks = control.marks.iter().enumerate();
        let set = marks.filter(|(_, mark)| mark.load(Ordering::Relaxed) != 0);
        let taken = set.map(|(number, mark)| {
            let bits = mark.swap(0, Ordering::SeqCst);
            let writes = Writes {
                any: bits & ANY != 0,
                kept_ts: bits & KEPT_TS != 0,
            };
            (number, writes)
        });
        (taken.filter(|(_, writes)| writes.any).collect(), is_urgent)
    }

    /// Whether there are urgent writes that have not been taken.
    pub(in crate::worker) fn are_behind(&self) -> bool {
        self.urgent != Some(shared::control().urgent.load(Ordering::SeqCst))
    }
}

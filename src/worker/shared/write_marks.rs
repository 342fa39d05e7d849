//! Sessions' writes, as the launcher takes them.
//!
//! A mark stands for all tables whose numbers fall on it. A mark of a table that has no state yet is taken for nothing:
//! a table that is entered, or gets another labelled table, is due at once, and searched from the beginning.

use crate::store::written::{ANY, KEPT_TS};
use crate::worker::queue::schedule::Writes;
use crate::worker::shared;
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// What the launcher has taken so far.
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

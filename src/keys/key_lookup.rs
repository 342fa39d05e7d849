//! Looks up the keys of a new row as the constraints will, and removes the expired rows that
//! hold them.
//!
//! Unguarded, with nothing to drop: PostgreSQL's errors pass through.

use super::liveness::Liveness;
use super::plan::{KeyPlan, UniqueKey};
use super::prepared_plan::PreparedPlan;
use super::removal::{self, RemovalOutcome};
use super::row::NewRow;
use crate::clock::execution;
use crate::clock::moment;
use crate::clock::now::now;
use crate::deletion::left_to_owner;
use crate::pg::abi::externs;
use crate::pg::exec::evaluator::IndexExpressions;
use crate::pg::exec::query;
use crate::pg::exec::scan::{Index, KeyValues, Scan, Writer};
use crate::pg::exec::table::Slot;
use crate::pg::session::scoped::Scope;
use std::time::Instant;

/// How often a row may be found changed: a trigger on it may change it for ever.
const MAX_CHANGES: u32 = 1000;

/// Removes the expired rows that hold a key of the new row. True if the statement had to wait
/// for another session. `prepared` is that of the row's table in this statement, with its plan.
pub(super) fn free_keys(new: &NewRow<'_>, prepared: &PreparedPlan<'_>, plan: &KeyPlan) -> bool {
    let mut wait = LookupWait {
        outer: None,
        since: None,
    };
    // A MERGE that has waited for a row, expired by now, inserts in its place.
    let has_waited = externs::last_wait() > now();
    if has_waited {
        wait.is_over();
    } else if prepared
        .many_rows
        .meet_no_expired_row(new.row, &prepared.liveness)
    {
        return false;
    }
    let evaluation = prepared.evaluation.as_ref();
    if let Some(evaluation) = evaluation {
        evaluation.evaluator.begin_row(new.row);
        new.generate(evaluation);
        if !new.passes_checks(evaluation) {
            // PostgreSQL will report it.
            new.restore(evaluation);
            return wait.end();
        }
    }
    for (at, key) in plan.keys.iter().enumerate() {
        if new.changes(key) {
            let lookup = Lookup {
                new,
                plan,
                liveness: &prepared.liveness,
                key,
                index: evaluation
                    .filter(|_| key.unique.needs_evaluation)
                    .and_then(|evaluation| evaluation.indexes.get(at)),
            };
            lookup.free(&mut wait);
        }
    }
    if let Some(evaluation) = evaluation {
        new.restore(evaluation);
    }
    wait.end()
}

/// Waits for sessions that write the same keys (C14). Holds nothing that needs dropping: an
/// error ends it with the statement.
struct LookupWait {
    /// Ends what the first wait began: the statement judges rows by a later time.
    outer: Option<Scope>,
    /// Since when the statement waits for the table's owner to delete rows.
    since: Option<Instant>,
}

impl LookupWait {
    /// A wait has ended: from here on, rows are judged by the time after it.
    fn is_over(&mut self) {
        if moment::clock_advances_during_waits() {
            let outer = execution::advance(moment::after_wait());
            self.outer.get_or_insert(outer);
        }
    }

    /// Puts the former time back. True if there was a wait.
    fn end(self) -> bool {
        if let Some(outer) = self.outer {
            execution::leave(outer);
        }
        self.outer.is_some()
    }
}

/// A key of a new row that is looked up.
struct Lookup<'a> {
    new: &'a NewRow<'a>,
    plan: &'a KeyPlan,
    liveness: &'a Liveness<'a>,
    /// One of the row's table.
    key: &'a UniqueKey,
    /// What is evaluated for it, if anything is.
    index: Option<&'a IndexExpressions<'a>>,
}

/// How a look-up ends.
enum LookupEnd {
    /// No other row has the key.
    Free,
    /// Another session was changing a row that does.
    Changed,
    /// Another session writes or deletes one.
    Waits(Writer),
    /// The table's owner must delete one.
    Left((u32, u16)),
}

impl Lookup<'_> {
    fn free(&self, wait: &mut LookupWait) {
        // A partial index may have no entry for the new row.
        if self.index.is_some_and(|index| !index.has(self.new.row)) {
            return;
        }
        let mut sought = KeyValues::EMPTY;
        self.fill(self.new.row, &mut sought);
        // NULLs conflict with nothing, unless the constraint is NULLS NOT DISTINCT.
        let mut parts = 0..self.key.unique.parts.len();
        if !self.key.unique.nulls_not_distinct && parts.any(|at| sought.get(at).is_none()) {
            return;
        }
        // The executor has locked it: it opens the indexes before it fires triggers.
        let table = self.new.row.table();
        table.with_index(self.key.unique.index, |index| {
            table.with_slot(|slot| {
                let mut changes = 0;
                while self.remove(index, &sought, slot, wait, &mut changes) {}
            });
        });
    }

    /// Reads the key of a row of the table.
    fn fill(&self, row: Slot<'_>, into: &mut KeyValues) {
        if let Some(index) = self.index {
            return index.form(row, into);
        }
        for (at, part) in self.key.unique.parts.iter().enumerate() {
            into.set(at, row.value(part.attno));
        }
    }

    /// Removes the expired rows that hold the key. True: look again, as another session was
    /// changing one. `changes` counts how often that happened.
    fn remove(
        &self,
        index: Index<'_>,
        sought: &KeyValues,
        slot: Slot<'_>,
        wait: &mut LookupWait,
        changes: &mut u32,
    ) -> bool {
        let parts = &self.key.unique.parts;
        // SAFETY: the key's parts are those of its index, by which `fill` has read the values.
        let end = unsafe { index.scan(parts, sought, slot, |scan| self.scan(scan, sought, slot)) };
        match end {
            LookupEnd::Free => false,
            LookupEnd::Changed => {
                *changes += 1;
                *changes < MAX_CHANGES
            }
            LookupEnd::Left(row) => {
                let since = *wait.since.get_or_insert_with(Instant::now);
                left_to_owner::wait_for(self.new.row.table().oid(), row, since);
                wait.is_over();
                true
            }
            LookupEnd::Waits(writer) => {
                writer.wait(slot);
                wait.is_over();
                true
            }
        }
    }

    fn scan(&self, scan: &mut Scan<'_>, sought: &KeyValues, slot: Slot<'_>) -> LookupEnd {
        while scan.next() {
            let writer = scan.writer();
            // The constraint would wait, too.
            let may_expire = self.key.unique.is_immediate
                && writer.is_some()
                && moment::clock_advances_during_waits();
            if self.new.replaces(&slot.tid())
                || (!may_expire && self.liveness.is_live(slot))
                || (scan.is_lossy() && !self.conflicts(slot, sought))
            {
                continue;
            }
            if let Some(writer) = writer {
                return LookupEnd::Waits(writer);
            }
            match removal::remove(slot, self.plan.deletion) {
                RemovalOutcome::Changed => return LookupEnd::Changed,
                RemovalOutcome::Left => return LookupEnd::Left(query::tid_parts(slot.tid())),
                RemovalOutcome::Gone | RemovalOutcome::Kept => {}
            }
        }
        LookupEnd::Free
    }

    /// Whether the key of the row in the slot really conflicts, where the index alone cannot
    /// tell.
    fn conflicts(&self, row: Slot<'_>, sought: &KeyValues) -> bool {
        let mut found = KeyValues::EMPTY;
        self.fill(row, &mut found);
        let mut parts = self.key.unique.parts.iter().enumerate();
        parts.all(|(at, part)| match (found.get(at), sought.get(at)) {
            // SAFETY: `fill` has read both by the key's parts.
            (Some(found), Some(sought)) => unsafe { part.conflicts(found, sought) },
            _ => false,
        })
    }
}

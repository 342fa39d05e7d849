//! For a statement that writes many rows: removes the table's few expired rows, so that no key need be looked up.

use super::liveness::Liveness;
use crate::clock::held;
use crate::clock::now::now;
use crate::deletion::message;
use crate::pg::abi::context::Context;
use crate::pg::catalog;
use crate::pg::exec::relation;
use crate::pg::exec::scan::{self, ScannedRow};
use crate::pg::exec::table::Slot;
use crate::pg::server::background;
use crate::policy;
use crate::store::{Clock, TablePolicy, cache, expiry_index, governing_label};
use pgrx::pg_sys;

/// True if no row of the table is expired, after removing a few; false also where that cannot be
/// decided for what a statement that has written this number of rows may spend.
pub(super) fn has_no_expired_row(
    table: &relation::OpenRelation,
    relid: pg_sys::Oid,
    written: u32,
) -> bool {
    let Some(policy) = cache::policy(relid).filter(|policy| policy.hides()) else {
        return true;
    };
    // By a TTL index new rows may come expired.
    let Some(clock) = policy.clock.filter(|_| policy.rules.is_empty()) else {
        return false;
    };
    // In a restored table only the row in a new row's way is deleted.
    let restored = governing_label(relid).is_none_or(|label| label.policy.restored);
    // Nor where expired rows are kept (C23, C24), or deletion is paused (C29).
    let now_on_server = background::now();
    let is_paused = policy
        .label
        .paused_until
        .is_some_and(|until| until.is_after(now_on_server));
    let kept = policy.keep_expired > 0
        || policy.waits_until(now_on_server).is_some()
        || is_paused
        || held::is_held();
    let may_delete = !restored
        && !kept
        && policy.label.archive_to.is_none()
        && !table.deletion_concerns_others()
        && table.passes_replica_identity_check();
    let indexes = expiry_index::find(relid, &clock.ts, clock.ttl.as_ref());
    Context::with_current(|memory| {
        let mut removal = BulkRemoval {
            liveness: Liveness::of(&policy, relid, memory),
            may_delete,
            name: catalog::qualified_name(relid),
            deleted: 0,
            budget: Budget::for_written(written),
        };
        let none_left = match indexes.first() {
            Some(&index) => ranges(&policy, &clock)
                .into_iter()
                .all(|range| removal.by_index(table, index, range)),
            None => removal.by_reading(table),
        };
        removal.end();
        none_left
    })
}

/// The first and the last key that expired rows have in the index for deletion: of those that inherit the default, and of
/// those that override it.
fn ranges(policy: &TablePolicy, clock: &Clock) -> Vec<(i64, i64)> {
    let default = policy.expiring_default();
    let cutoff = default.map(|seconds| policy::cutoff(now(), seconds));
    match clock.ttl {
        None => cutoff
            .map(|cutoff| (i64::MIN, cutoff))
            .into_iter()
            .collect(),
        Some(_) => {
            let inheriting = cutoff.map(|cutoff| (0, policy::inheriting_key(cutoff)));
            let overriding = (i64::MIN, policy::overriding_key(now()));
            inheriting.into_iter().chain([overriding]).collect()
        }
    }
}

/// What may be spent on one examination.
struct Budget {
    rows: u32,
    entries: u32,
    blocks: u32,
}

impl Budget {
    /// For a statement that has written this number of rows, and may write as many again: to read a block costs about as
    /// much as three look-ups.
    fn for_written(rows: u32) -> Self {
        Self {
            rows: rows.saturating_mul(4),
            entries: rows,
            blocks: rows / 3,
        }
    }
}

/// Removes expired rows. A row that another session writes, deletes or locks is left.
struct BulkRemoval<'a> {
    liveness: Liveness<'a>,
    /// False if DELETE has side effects, or would fail.
    may_delete: bool,
    /// The table's name, for messages.
    name: String,
    deleted: u32,
    budget: Budget,
}

impl BulkRemoval<'_> {
    /// Removes those that an index leads to; true if none is left.
    ///
    /// The index alone does not decide: without a predicate it also holds rows whose override may
    /// keep them live.
    fn by_index(
        &mut self,
        table: &relation::OpenRelation,
        index: pg_sys::Oid,
        range: (i64, i64),
    ) -> bool {
        scan::each_between(table, index, range, &mut |met| match met {
            ScannedRow::Entry if self.budget.entries == 0 => false,
            ScannedRow::Entry => {
                self.budget.entries -= 1;
                true
            }
            ScannedRow::Unfinished => false,
            ScannedRow::Version(row) => self.remove(row),
        })
    }

    /// Removes those that are met on reading the table; true if none is left. A table that is too large for the
    /// statement is not read.
    fn by_reading(&mut self, table: &relation::OpenRelation) -> bool {
        let blocks = table.blocks();
        if !table.is_heap() || blocks > self.budget.blocks {
            return false;
        }
        scan::each_row(table, &mut |row, is_unfinished| match is_unfinished {
            // Whatever becomes of it.
            true => self.liveness.is_live(row),
            false => self.remove(row),
        })
    }

    /// Removes a row if it is expired; whether it is not there any more, or live.
    fn remove(&mut self, row: Slot<'_>) -> bool {
        if self.liveness.is_live(row) {
            return true;
        }
        // What this transaction has written may be of the command that runs, which cannot delete it.
        if !self.may_delete || self.budget.rows == 0 || row.is_own() {
            return false;
        }
        if self.deleted == 0 {
            message::begin(&self.name);
        }
        self.budget.rows -= 1;
        self.deleted += 1;
        row.delete_if_free()
    }

    /// Says how many rows were removed.
    fn end(self) {
        if self.deleted > 0 {
            message::end(&self.name, self.deleted.into());
        }
    }
}

//! COPY FROM in batches, for a table that may have expired rows.
//!
//! In place of the trigger, which would turn multi-insert off, the keys of a batch are looked up
//! before it is stored: first by one scan of the range of its keys, then, where that meets a row
//! that is expired or unfinished, one by one. As rows go on coming, more and more of the table's
//! expired rows are removed at a time, until none is left
//! (`docs/decisions/0036-copy-in-batches.md`).
//!
//! Unguarded, with nothing to drop: PostgreSQL's errors pass through.

use super::bulk_precheck::{Budget, has_no_expired_row};
use super::liveness::Liveness;
use super::plan::{self, KeyPlan};
use super::prepared::Prepared;
use super::row::New;
use super::{after_wait, lookup, removal};
use crate::pg::batch::Batch;
use crate::pg::insertion::Around;
use crate::pg::relation;
use crate::pg::table::{Slot, Table};
use crate::store::Clock;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::Cell;
use std::rc::Rc;

/// How many entries are read in the range of a batch's keys, for so many rows one: where there are
/// more, to look up each key is cheaper.
const ROWS_PER_ENTRY: usize = 4;

/// Expired rows are removed at large when so many rows have come, and each time their number has
/// doubled.
const MANY_ROWS: u32 = 2000;

/// What one COPY does around its batches.
pub(super) struct Batches {
    plan: Rc<KeyPlan>,
    clock: Clock,
    liveness: Liveness<'static>,
    /// Whether no row of the table is expired.
    none_expired: Cell<bool>,
    /// How many rows have come.
    rows: Cell<u32>,
    /// So many rows must have come before expired rows are removed at large; `None` once a row has
    /// come expired, which this command cannot delete.
    next_removal: Cell<Option<u32>>,
    /// Whether a row of the present batch comes expired.
    comes_expired: Cell<bool>,
}

impl Batches {
    /// `None` where the trigger must see each row: an expression, exclusion constraint or TTL
    /// index is involved, or a deletion has side effects. `none_expired`: so far no row is.
    pub(super) fn of(table: &relation::Open, none_expired: bool) -> Option<Self> {
        let plan = plan::of(table.table())?;
        let clock = plan.policy.clock.filter(|_| plan.policy.rules.is_empty())?;
        let mut keys = plan.keys.iter();
        let is_fit = keys.all(|key| key.unique.is_ordered() && !key.always_changes)
            && plan.deletion.is_direct()
            && !table.table().triggers().fire_before_insert_statement();
        is_fit.then(|| Self {
            liveness: Liveness::by_clock(&plan.policy),
            clock,
            none_expired: Cell::new(none_expired),
            rows: Cell::new(0),
            next_removal: Cell::new(Some(MANY_ROWS)),
            comes_expired: Cell::new(false),
            plan,
        })
    }

    /// Whether a key of the batch may be held by an expired row, or by one whose writer has not
    /// ended.
    fn may_meet_expired(&self, rows: Batch<'_>) -> bool {
        let most = rows.rows().count() / ROWS_PER_ENTRY;
        !self.plan.keys.iter().all(|key| {
            let mut read = 0;
            rows.each_in_range(&key.unique, |scan, row| {
                read += 1;
                read <= most && scan.writer().is_none() && self.liveness.is_live(row)
            })
        })
    }

    /// Removes expired rows in proportion to the rows that have come, if it is time; true if none
    /// is left.
    fn remove_at_large(&self, rows: Batch<'_>) -> bool {
        let come = self.rows.get();
        if self.next_removal.get().is_none_or(|next| come < next) {
            return false;
        }
        self.next_removal.set(Some(come.saturating_mul(2)));
        let none_left = remove_some(rows.table().oid(), come);
        self.none_expired.set(none_left);
        none_left
    }

    /// Removes the expired rows that hold a key of the row.
    fn free_keys(&self, new: &New<'_>, scratch: Slot<'_>) {
        let prepared = Prepared {
            plan: None,
            liveness: self.liveness,
            evaluation: None,
        };
        if lookup::free_keys(new, &prepared, &self.plan, Some(scratch))
            && let Some(time) = after_wait::stamp(new, &self.clock, self.plan.policy.ts_granularity)
        {
            new.row.store_time(self.clock.ts.attno, time);
        }
    }
}

impl Around for Batches {
    fn before(&self, rows: Batch<'_>) {
        // COPY has its own copy of the triggers by now; other statements need this one.
        show_trigger(rows.table());
        let is_expired = |row| !self.liveness.is_live_by_clock(row);
        self.comes_expired.set(rows.rows().any(is_expired));
        let come = u32::try_from(rows.rows().count()).unwrap_or(u32::MAX);
        self.rows.set(self.rows.get().saturating_add(come));
        if !self.none_expired.get() && self.may_meet_expired(rows) && !self.remove_at_large(rows) {
            rows.table().with_slot(|scratch| {
                for row in rows.rows() {
                    self.free_keys(&New::inserted(row), scratch);
                }
            });
        }
    }

    fn end(&self, table: Table<'_>) {
        show_trigger(table);
    }

    /// A row that came expired must not be in the way of a later one of its batch, whose keys were
    /// looked up when neither was stored.
    fn after(&self, rows: Batch<'_>) {
        if !self.comes_expired.get() {
            return;
        }
        self.none_expired.set(false);
        self.next_removal.set(None);
        let removed = rows.flags();
        for key in &self.plan.keys {
            rows.each_followed(&key.unique, |at, row| {
                if !self.liveness.is_live_by_clock(row) && !removed.set(at) {
                    removal::remove(row, self.plan.deletion);
                }
            });
        }
    }
}

#[pg_guard]
extern "C-unwind" fn remove_some(relid: pg_sys::Oid, come: u32) -> bool {
    let table = relation::Open::locked(relid);
    has_no_expired_row(&table, relid, &mut Budget::for_rows(come.into()))
}

/// Undoes what hides the trigger from COPY.
fn show_trigger(table: Table<'_>) {
    table.triggers().show(pg_sys::TRIGGER_TYPE_INSERT);
}

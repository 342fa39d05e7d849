//! Rows that cannot be deleted, and blocks that cannot be read: set aside with growing pauses, so that all
//! others are deleted.

use super::SharedLock;
use super::state::{self, TableKey};
use crate::deletion::receiver::FoundRow;
use crate::deletion::set_aside::SetAside;
use crate::error::Error;
use crate::pg::server::activity;
use crate::worker::queue::quota::{Claimant, Places};
use crate::worker::queue::schedule;
use crate::worker::shared;
use pgrx::pg_sys;

/// A row that could not be deleted, or a block that could not be read, set aside for a while.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockedRow {
    /// `database` 0: the entry is free.
    pub(in crate::worker) table: TableKey,
    pub(in crate::worker) block: u32,
    /// 0: the whole block.
    pub(in crate::worker) offset: u16,
    /// How often it has failed.
    pub(in crate::worker) attempts: u16,
    /// The time of the next attempt.
    pub(in crate::worker) until: i64,
    /// When it expired; `i64::MIN` = not known.
    pub(in crate::worker) expiry: i64,
    /// The table's owner.
    owner: u32,
}

/// The offset of no row.
const WHOLE_BLOCK: u16 = 0;

/// What stands for a block that cannot be read.
pub(in crate::worker) fn whole_block(block: u32) -> FoundRow {
    FoundRow {
        block,
        offset: WHOLE_BLOCK,
        key: None,
    }
}

/// Calls `work` with the rows that are set aside, under the lock.
fn with_blocked<T>(work: impl FnOnce(&mut [BlockedRow]) -> T) -> T {
    let mut lock = SharedLock::exclusive();
    work(shared::control().blocked.get_mut(&mut lock))
}

/// The rows of this table that are set aside at this time.
pub(in crate::worker) fn of(table: TableKey, now: i64) -> SetAside {
    let mut result = SetAside::default();
    with_blocked(|rows| {
        for row in rows.iter().filter(|row| row.table == table) {
            result.count += 1;
            if row.until > now {
                match row.offset {
                    WHOLE_BLOCK => result.blocks.push(row.block),
                    offset => result.rows.push((row.block, offset)),
                }
                result.next = Some(result.next.map_or(row.until, |next| next.min(row.until)));
            }
            if row.expiry != i64::MIN {
                result.oldest = Some(result.oldest.map_or(row.expiry, |old| old.min(row.expiry)));
            }
        }
    });
    result
}

/// The most rows of one table, which leaves room for the owner's others.
const FOR_ONE_TABLE: usize = shared::BLOCKED_ROWS / 8;

/// Sets a row aside; false if there is no room for more, which is noted.
pub(in crate::worker) fn set_aside(
    table: TableKey,
    found: FoundRow,
    expiry: Option<i64>,
    failure: &Error,
    now: i64,
) -> bool {
    let mut lock = SharedLock::exclusive();
    let owner = lock.find(&table).map_or(0, |state| state.owner);
    let rows = shared::control().blocked.get_mut(&mut lock);
    let same = |row: &BlockedRow| {
        row.table == table && row.block == found.block && row.offset == found.offset
    };
    let place = rows
        .iter()
        .position(same)
        .or_else(|| free_place(rows, table, owner));
    let Some(row) = place.and_then(|place| rows.get_mut(place)) else {
        if let Some(state) = lock.find_mut(&table) {
            state.crowded_at = now;
        }
        return false;
    };
    let attempts = if same(row) {
        row.attempts.saturating_add(1)
    } else {
        1
    };
    *row = BlockedRow {
        table,
        block: found.block,
        offset: found.offset,
        attempts,
        until: now.saturating_add(schedule::set_aside(attempts, failure.is_of_contention())),
        expiry: expiry.unwrap_or(i64::MIN),
        owner,
    };
    true
}

/// A place for one more row of the table, if its owner may take one.
fn free_place(rows: &[BlockedRow], table: TableKey, owner: u32) -> Option<usize> {
    let taken = || rows.iter().filter(|row| row.table.database != 0);
    if taken().filter(|row| row.table == table).count() >= FOR_ONE_TABLE {
        return None;
    }
    let total = u32::try_from(rows.len()).unwrap_or(u32::MAX);
    // Superusers' tables keep rows like others, and leave as many places.
    let claimant = Claimant {
        owner,
        unlimited: false,
    };
    let places = Places::new(total, taken().map(|row| row.owner));
    places.admits(claimant).ok()?;
    rows.iter().position(|row| row.table.database == 0)
}

/// After a whole pass: forgets the rows that were due for another attempt when it began; those
/// that failed again have a later time.
pub(in crate::worker) fn forget_tried(table: TableKey, pass_began: i64) {
    state::with_table(table, |state| {
        if state.crowded_at < pass_began {
            state.crowded_at = 0;
        }
    });
    forget_where(|row| row.table == table && row.until <= pass_began);
}

/// Whether rows of the table are set aside.
pub(in crate::worker) fn has_some(table: TableKey) -> bool {
    with_blocked(|rows| rows.iter().any(|row| row.table == table))
}

/// Has all rows of the table tried at once.
pub(in crate::worker) fn try_now(table: TableKey, now: i64) {
    with_blocked(|rows| {
        for row in rows.iter_mut().filter(|row| row.table == table) {
            row.until = row.until.min(now);
        }
    });
}

/// All rows of a table that are set aside, whether they are to be tried now or later.
pub(in crate::worker) fn rows_of(table: TableKey) -> Vec<(u32, u16)> {
    with_blocked(|rows| {
        let of_table = rows.iter().filter(|row| row.table == table);
        let single = of_table.filter(|row| row.offset != WHOLE_BLOCK);
        single.map(|row| (row.block, row.offset)).collect()
    })
}

/// Forgets these rows of a table, which are gone or live.
pub(in crate::worker) fn forget(table: TableKey, gone: &[(u32, u16)]) {
    forget_where(|row| row.table == table && gone.contains(&(row.block, row.offset)));
}

/// Forgets all rows of a table: under another policy they are tried again.
pub(in crate::worker) fn forget_all(table: TableKey) {
    state::with_table(table, |state| {
        (state.referred, state.count_again_at) = (0, 0);
    });
    forget_where(|row| row.table == table);
}

fn forget_where(is_over: impl Fn(&BlockedRow) -> bool) {
    with_blocked(|rows| {
        for row in rows.iter_mut().filter(|row| is_over(row)) {
            row.table.database = 0;
        }
    });
}

/// What can keep rows: triggers and rules with their functions, foreign keys, privileges, and what an archive or a publication
/// lacks.
const OBSTACLES: [pg_sys::Oid; 10] = [
    pg_sys::TriggerRelationId,
    pg_sys::RewriteRelationId,
    pg_sys::ProcedureRelationId,
    pg_sys::ConstraintRelationId,
    pg_sys::RelationRelationId,
    pg_sys::AttributeRelationId,
    pg_sys::NamespaceRelationId,
    pg_sys::PublicationRelationId,
    pg_sys::PublicationRelRelationId,
    pg_sys::AuthMemRelationId,
];

/// How often these have been written to, if rows of the table are set aside; else 0.
pub(in crate::worker) fn obstacles_written(table: TableKey) -> i64 {
    match has_some(table) {
        true => activity::rows_changed(&OBSTACLES).unwrap_or(0),
        false => 0,
    }
}

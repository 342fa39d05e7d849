//! Rows that sessions wait for, since only their owner's worker may delete them: it deletes these first.

use super::state::TableKey;
use super::{ExclusiveLock, SharedLock};
use crate::pg::server::background;
use crate::worker::shared;
use pgrx::pg_sys;

/// The most rows that are requested at a time,
pub(in crate::worker) const MOST: usize = 64;
/// and of one table: its sessions leave room for those of others.
const MOST_OF_TABLE: usize = 8;

/// A session that waits requests its row again after this time,
const AGAIN: i64 = 1_000_000;
/// and has given up after this one, in microseconds.
const LONGEST: i64 = 10_000_000;

/// A row that a session waits for. Valid when zeroed.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(in crate::worker) struct RequestedRow {
    /// `database` 0: the entry is free.
    table: TableKey,
    block: u32,
    offset: u16,
    /// When it was requested.
    at: i64,
}

/// Has a worker come to the table now, for this row. Without room, the session waits as for any worker.
pub(in crate::worker) fn request(relid: pg_sys::Oid, (block, offset): (u32, u16)) {
    let row = RequestedRow {
        table: TableKey::here(relid),
        block,
        offset,
        at: background::monotonic(),
    };
    if note(&mut SharedLock::exclusive(), row) {
        shared::wake_launcher();
    }
}

fn note(lock: &mut ExclusiveLock, requested: RequestedRow) -> bool {
    let now = requested.at;
    let rows = shared::control().requested.get_mut(lock);
    let named = |row: &RequestedRow| (row.table, row.block, row.offset);
    let same = rows.iter().position(|row| named(row) == named(&requested));
    let is_free = |row: &RequestedRow| row.table.database == 0 || now - row.at > LONGEST;
    let of_table = |row: &&RequestedRow| row.table == requested.table && !is_free(row);
    let has_room = rows.iter().filter(of_table).count() < MOST_OF_TABLE;
    let free = || rows.iter().position(is_free).filter(|_| has_room);
    let place = same.or_else(free);
    let Some(row) = place.and_then(|place| rows.get_mut(place)) else {
        return false;
    };
    if same.is_some() && now - row.at < AGAIN {
        return false;
    }
    *row = requested;
    if let Some(state) = lock
        .find_mut(&requested.table)
        .filter(|state| state.is_target())
    {
        state.schedule.request(now);
    }
    true
}

/// Takes the rows of a table.
pub(in crate::worker) fn take(table: TableKey) -> Vec<(u32, u16)> {
    let mut lock = SharedLock::exclusive();
    let rows = shared::control().requested.get_mut(&mut lock);
    let of_table = rows.iter_mut().filter(|row| row.table == table);
    of_table
        .map(|row| {
            row.table.database = 0;
            (row.block, row.offset)
        })
        .collect()
}

//! Rows that cannot be deleted: set aside with growing pauses, so that all the
//! others go.

use super::schedule;
use super::shared;
use super::state::TableKey;
use crate::pg::receiver::Found;
use crate::pg::shmem::Locked;

/// A row that could not be deleted, set aside for a while.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockedRow {
    /// `database` 0: the place is free.
    pub(super) table: TableKey,
    pub(super) block: u32,
    pub(super) offset: u16,
    /// How often it has failed.
    pub(super) attempts: u16,
    /// It is tried again at this time.
    pub(super) until: i64,
    /// When it expired; `i64::MIN` = not known.
    pub(super) expiry: i64,
}

/// Works on the rows that are set aside, under the lock.
fn with_blocked<T>(work: impl FnOnce(&mut [BlockedRow]) -> T) -> T {
    let _lock = Locked::exclusive();
    // SAFETY: under the exclusive lock.
    work(unsafe { &mut *shared::control().blocked.get() })
}

/// A table's rows that are set aside.
#[derive(Debug, Default)]
pub(super) struct SetAside {
    /// To be left alone for now.
    rows: Vec<(u32, u16)>,
    /// How many there are, those included whose time has come.
    pub(super) count: i64,
    /// When the first of them is to be tried again.
    pub(super) next: Option<i64>,
    /// When the one expired that expired first.
    pub(super) oldest: Option<i64>,
}

impl SetAside {
    /// A condition that excludes them, to be appended to others.
    pub(super) fn exclusion(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        format!(
            " AND NOT (ctid OPERATOR(pg_catalog.=) ANY ({}))",
            tid_array(self.rows.iter().copied())
        )
    }
}

/// Rows as an array in SQL.
pub(super) fn tid_array(rows: impl Iterator<Item = (u32, u16)>) -> String {
    let mut array = String::from("'{");
    for (number, (block, offset)) in rows.enumerate() {
        let comma = if number == 0 { "" } else { "," };
        array += &format!("{comma}\"({block},{offset})\"");
    }
    array + "}'::pg_catalog.tid[]"
}

/// What is set aside in this table at this time.
pub(super) fn of(table: TableKey, now: i64) -> SetAside {
    let mut result = SetAside::default();
    with_blocked(|rows| {
        for row in rows.iter().filter(|row| row.table == table) {
            result.count += 1;
            if row.until > now {
                result.rows.push((row.block, row.offset));
                result.next = Some(result.next.map_or(row.until, |next| next.min(row.until)));
            }
            if row.expiry != i64::MIN {
                result.oldest = Some(result.oldest.map_or(row.expiry, |old| old.min(row.expiry)));
            }
        }
    });
    result
}

/// The most rows of one table, so that others have room.
const FOR_ONE_TABLE: usize = shared::BLOCKED_ROWS / 8;

/// Sets a row aside; false if there is no room for more.
pub(super) fn set_aside(table: TableKey, found: Found, expiry: Option<i64>, now: i64) -> bool {
    with_blocked(|rows| {
        let same = |row: &BlockedRow| {
            row.table == table && row.block == found.block && row.offset == found.offset
        };
        if rows.iter().filter(|row| row.table == table).count() >= FOR_ONE_TABLE
            && !rows.iter().any(&same)
        {
            return false;
        }
        let place = rows
            .iter()
            .position(same)
            .or_else(|| rows.iter().position(|row| row.table.database == 0));
        let Some(row) = place.and_then(|place| rows.get_mut(place)) else {
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
            until: now.saturating_add(schedule::set_aside(attempts)),
            expiry: expiry.unwrap_or(i64::MIN),
        };
        true
    })
}

/// After a whole pass: forgets the rows whose time had come when it began, for
/// those that failed again have a new one.
pub(super) fn forget_tried(table: TableKey, pass_began: i64) {
    with_blocked(|rows| {
        for row in rows
            .iter_mut()
            .filter(|row| row.table == table && row.until <= pass_began)
        {
            row.table.database = 0;
        }
    });
}

/// Forgets all of a table's: another policy, another chance.
pub(super) fn forget_all(table: TableKey) {
    with_blocked(|rows| {
        for row in rows.iter_mut().filter(|row| row.table == table) {
            row.table.database = 0;
        }
    });
}

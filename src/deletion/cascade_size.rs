//! How much a batch changes in the tables that it reaches by foreign keys.

use super::referring;
use crate::pg::catalog::cascade;
use crate::pg::server::activity;
use pgrx::pg_sys;

/// The tables that foreign keys change when rows of another table are deleted.
#[derive(Debug)]
pub(crate) struct Cascade {
    reached: Vec<pg_sys::Oid>,
    before: u64,
}

impl Cascade {
    /// Begins to count.
    pub(crate) fn begin(relid: pg_sys::Oid) -> Self {
        referring::count(relid);
        let mut begun = Self {
            reached: cascade::reached_from(relid),
            before: 0,
        };
        begun.before = begun.changed();
        begun
    }

    fn changed(&self) -> u64 {
        let tables = self.reached.iter().copied();
        tables.map(activity::rows_changed_in_transaction).sum()
    }

    /// How many rows of the table itself have gone because they refer to deleted ones.
    pub(crate) fn deleted(&self) -> u64 {
        referring::counted()
    }

    /// How many rows have been changed, with those.
    pub(crate) fn touched(&self) -> u64 {
        self.changed().saturating_sub(self.before) + self.deleted()
    }
}

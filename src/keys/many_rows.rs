//! A statement that writes many rows: once no row of the table is expired, no key need be looked up.
//!
//! How many rows a statement will write is known in advance of few; of COPY never. So the table is examined
//! when as many rows have come as cost what the examination does; if expired rows are left then, when twice as many have.
//! So it never costs more than the look-ups (`docs/decisions/0095-examined-while-written.md`).

use super::examination::has_no_expired_row;
use super::liveness::Liveness;
use crate::pg::exec::relation::OpenRelation;
use crate::pg::exec::table::Slot;
use crate::store::cache;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::cell::Cell;

/// The number of rows after which the table is first examined.
const MANY_ROWS: u32 = 1000;

/// What one statement has found out of a table while it writes to it.
pub(super) struct ManyRows {
    written: Cell<u32>,
    /// The number of written rows at which the table is examined; `None` once it need not be.
    examine_at: Cell<Option<u32>>,
    /// No row of the table is expired. As `ttl.now()` is fixed for the statement, none will be but one that is
    /// written so.
    all_live: Cell<bool>,
}

impl ManyRows {
    pub(super) const fn none() -> Self {
        Self {
            written: Cell::new(0),
            examine_at: Cell::new(Some(MANY_ROWS)),
            all_live: Cell::new(false),
        }
    }

    /// Whether no expired row can have a key of this row, which is about to be written.
    #[inline]
    pub(super) fn meet_no_expired_row(&self, new: Slot<'_>, liveness: &Liveness<'_>) -> bool {
        if self.all_live.get() {
            // The next row may need its key.
            self.all_live.set(liveness.is_live_by_clock(new));
            return true;
        }
        let Some(examine_at) = self.examine_at.get() else {
            return false;
        };
        let written = self.written.get() + 1;
        self.written.set(written);
        if written == examine_at {
            self.all_live.set(examine(new.table().oid(), written));
            let again = examine_at.checked_mul(2);
            self.examine_at.set(again.filter(|_| !self.all_live.get()));
        }
        false
    }
}

/// Whether no row of the table is expired, for as much as the look-ups have cost by now.
#[pg_guard]
extern "C-unwind" fn examine(relid: pg_sys::Oid, written: u32) -> bool {
    // A generated column has no value yet when triggers fire.
    let is_computed = |relid| {
        let clock = cache::policy(relid)?.clock?;
        clock.ttl.map(|ttl| ttl.generated)
    };
    if is_computed(relid) == Some(true) {
        return false;
    }
    let table = OpenRelation::locked(relid);
    has_no_expired_row(&table, relid, written)
}

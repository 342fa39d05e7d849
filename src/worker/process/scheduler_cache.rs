//! What the scheduler found of each relation when it last read the relation's policy, until PostgreSQL
//! invalidates it: where some of many policies change, only those are read anew.

use crate::pg::abi::variable::{ByOid, Variable};
use crate::pg::catalog::{self, invalidation};
use pgrx::pg_sys;
use std::cell::Cell;

/// A table or partition with rows of its own.
#[derive(Debug, Clone, Copy)]
pub(in crate::worker) struct Target {
    pub(in crate::worker) labelled_table: pg_sys::Oid,
    pub(in crate::worker) owner: pg_sys::Oid,
    /// The owner is a superuser.
    pub(in crate::worker) unlimited: bool,
    pub(in crate::worker) drop_partitions: bool,
    /// How soon a row that is written now can be deleted, in microseconds.
    pub(in crate::worker) shortest: i64,
}

/// A target with the fingerprint of its policy.
pub(in crate::worker) type Fingerprinted = (Target, u64);

/// What one relation is.
#[derive(Debug, Clone, Copy)]
pub(in crate::worker) struct Found {
    /// The relation whose label is in force, and the hash of that label.
    pub(in crate::worker) labelled_table: pg_sys::Oid,
    pub(in crate::worker) label: u64,
    /// `None` if it is no target.
    pub(in crate::worker) target: Option<Fingerprinted>,
}

static FOUND: ByOid<Found> = ByOid::empty();
/// The session drops its own caches, and nothing has changed because of that.
static IS_OWN: Variable<Cell<bool>> = Variable::new(Cell::new(false));

/// Registers for invalidations; once in a process.
pub(in crate::worker) fn init() {
    invalidation::listen(on_invalidation);
}

pub(in crate::worker) fn get(relid: pg_sys::Oid) -> Option<Found> {
    FOUND.with_borrow(|found| found.get(&relid).copied())
}

pub(in crate::worker) fn put(relid: pg_sys::Oid, what: Found) {
    FOUND.with_borrow_mut(|found| found.insert(relid, what));
}

pub(in crate::worker) fn clear() {
    FOUND.with_borrow_mut(|found| found.clear());
}

/// Drops all caches of this session but this one: what is read from now on is read from the catalogs.
/// It takes in no message of another session, so that this cache loses none.
pub(in crate::worker) fn forget_caches() {
    IS_OWN.set(true);
    catalog::forget_caches();
    IS_OWN.set(false);
}

/// May be called anywhere: does not allocate, raise or look anything up.
fn on_invalidation(relid: pg_sys::Oid) {
    if relid != pg_sys::InvalidOid || !IS_OWN.get() {
        invalidation::forget(&FOUND, relid);
    }
}

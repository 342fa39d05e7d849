//! Prepared transactions: their writes are announced when they commit, perhaps in another
//! session. Kept in shared memory by a hash of the identifier. What a restart loses, or has no
//! room, is found at the next routine look (`ttl.naptime`).

use super::{shared, wakeups};
use crate::pg::background;
use std::cell::Cell;
use std::ffi::CStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// The most entries, one for each table of a prepared transaction.
pub(super) const PREPARED: usize = 1024;

/// A table that a prepared transaction has written to.
#[repr(C)]
pub(super) struct Prepared {
    /// The transaction; 0: free.
    transaction: AtomicU64,
    /// The labelled table; 0: a policy has changed.
    labelled_table: AtomicU32,
    /// The bits of its mark.
    bits: AtomicU8,
}

thread_local! {
    /// The transaction that this session is preparing.
    static PREPARING: Cell<u64> = const { Cell::new(0) };
}

/// The number of a transaction with this identifier, in this database.
fn number(identifier: &CStr) -> u64 {
    let mut hasher = DefaultHasher::new();
    (background::my_database().to_u32(), identifier).hash(&mut hasher);
    hasher.finish().max(1)
}

/// PREPARE TRANSACTION begins.
pub(crate) fn begin(identifier: &CStr) {
    PREPARING.set(number(identifier));
}

/// The transaction is prepared, and has written to these tables. Raises no error.
pub(super) fn keep(tables: impl Iterator<Item = (u32, u8)>) {
    let transaction = PREPARING.take();
    let mut free = shared::control().prepared.iter();
    for (labelled_table, bits) in tables.filter(|_| transaction != 0) {
        let is_taken = |slot: &&Prepared| {
            let (old, new) = (0, transaction);
            let taken =
                (slot.transaction).compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed);
            taken.is_ok()
        };
        let Some(slot) = free.find(is_taken) else {
            return;
        };
        slot.labelled_table.store(labelled_table, Ordering::Relaxed);
        slot.bits.store(bits, Ordering::Release);
    }
}

/// A prepared transaction has ended in this session.
pub(crate) fn end(identifier: &CStr, committed: bool) {
    let transaction = number(identifier);
    let slots = shared::control().prepared.iter();
    for slot in slots.filter(|slot| slot.transaction.load(Ordering::Acquire) == transaction) {
        let bits = slot.bits.load(Ordering::Acquire);
        let labelled_table = slot.labelled_table.load(Ordering::Relaxed);
        slot.transaction.store(0, Ordering::Release);
        if committed {
            wakeups::note_prepared(labelled_table, bits);
        }
    }
}

//! Prepared transactions: their writes are announced when they commit, perhaps in another
//! session. Kept in shared memory by a hash of the identifier. One that is not there was prepared
//! before a restart, on the former primary, or when there was no room: it may have written to any
//! table.

use crate::pg::abi::variable::Variable;
use crate::pg::server::background;
use crate::store::{self, written};
use crate::worker::shared;
use std::cell::Cell;
use std::ffi::CStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// The most entries, one for each prepared transaction and each table that it has written to.
pub(in crate::worker) const PREPARED: usize = 1024;

/// The labelled table of an entry that only says that the transaction is known.
const NONE: u32 = u32::MAX;

/// A table that a prepared transaction has written to.
#[repr(C)]
pub(in crate::worker) struct PreparedWrites {
    /// The transaction; 0: free.
    transaction: AtomicU64,
    /// The labelled table; 0: a policy has changed; or [`NONE`].
    labelled_table: AtomicU32,
    /// The bits of its mark.
    bits: AtomicU8,
}

/// The transaction that this session is preparing.
static PREPARING: Variable<Cell<u64>> = Variable::new(Cell::new(0));

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
pub(in crate::worker) fn keep(tables: impl Iterator<Item = (u32, u8)>) {
    let transaction = PREPARING.take();
    if transaction == 0 {
        return;
    }
    let mut free = shared::control().prepared.iter();
    for (labelled_table, bits) in [(NONE, 0)].into_iter().chain(tables) {
        let is_taken = |slot: &&PreparedWrites| {
            let (old, new) = (0, transaction);
            let taken =
                (slot.transaction).compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed);
            taken.is_ok()
        };
        let Some(slot) = free.find(is_taken) else {
            // All or nothing, as one that is known is believed.
            entries(transaction).for_each(|slot| slot.transaction.store(0, Ordering::Release));
            return;
        };
        slot.labelled_table.store(labelled_table, Ordering::Relaxed);
        slot.bits.store(bits, Ordering::Release);
    }
}

fn entries(transaction: u64) -> impl Iterator<Item = &'static PreparedWrites> {
    let slots = shared::control().prepared.iter();
    slots.filter(move |slot| slot.transaction.load(Ordering::Acquire) == transaction)
}

/// COMMIT PREPARED begins. If nothing is known of that transaction, every table of the database
/// counts as written to, and every policy as changed; an error forgets that.
pub(crate) fn before_commit(identifier: &CStr) {
    if entries(number(identifier)).next().is_some() {
        return;
    }
    announce(0, 0);
    for (labelled_table, _) in store::labels() {
        announce(labelled_table.to_u32(), written::ANY);
    }
}

/// A prepared transaction has ended in this session.
pub(crate) fn end(identifier: &CStr, committed: bool) {
    for slot in entries(number(identifier)) {
        let bits = slot.bits.load(Ordering::Acquire);
        let labelled_table = slot.labelled_table.load(Ordering::Relaxed);
        slot.transaction.store(0, Ordering::Release);
        if committed && labelled_table != NONE {
            announce(labelled_table, bits);
        }
    }
}

/// Notes what a prepared transaction has written. It is announced when the current transaction
/// commits, which is that of COMMIT PREPARED.
fn announce(labelled_table: u32, bits: u8) {
    if labelled_table == 0 {
        written::note_policy_change();
    } else {
        written::note_prepared(labelled_table, bits);
    }
}

//! What sessions tell the workers: which tables they have written to, and that
//! a policy has changed. Told at commit, when others can see it.

use super::{prepared, shared};
use crate::pg::background;
use crate::settings;
use crate::store::TablePolicy;
use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering;

/// Bits of a mark.
const ANY: u8 = 1;
const KEPT_TS: u8 = 2;

/// From this age on, in microseconds, a transaction's rows are looked for from the
/// very beginning of the index.
pub(super) const LONG_TRANSACTION: i64 = 8_000_000;

/// What has been written to a table since somebody looked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Writes {
    /// Anything.
    pub(super) any: bool,
    /// Rows whose time was given by the statement, so that they may have expired
    /// before they came.
    pub(super) kept_ts: bool,
}

thread_local! {
    /// This transaction's: tables that carry a policy, bits, and whether
    /// somebody must be woken.
    static NOTED: RefCell<Vec<(u32, u8, bool)>> = const { RefCell::new(Vec::new()) };
    static POLICY_CHANGED: Cell<bool> = const { Cell::new(false) };
}

/// A statement of this transaction has written to a table under this policy.
pub(crate) fn note(policy: &TablePolicy) {
    // A date of the row's own may be past when it comes.
    let kept = settings::preserve_ts() || !policy.rules.is_empty();
    note_bits(policy, if kept { ANY | KEPT_TS } else { ANY });
}

/// As [`note`], for COPY, which may give rows a time of their own.
pub(crate) fn note_copy(policy: &TablePolicy) {
    note_bits(policy, ANY | KEPT_TS);
}

fn note_bits(policy: &TablePolicy, bits: u8) {
    // Rows that cannot expire before the next look need no other.
    let soon = policy.clock.is_some_and(|clock| clock.ttl.is_some())
        || bits & KEPT_TS != 0
        || policy
            .default_ttl
            .is_some_and(|default| default <= settings::naptime_seconds());
    let holder = policy.holder.to_u32();
    NOTED.with_borrow_mut(
        |noted| match noted.iter_mut().find(|(table, ..)| *table == holder) {
            Some((_, known, wake)) => {
                *known |= bits;
                *wake |= soon;
            }
            None => noted.push((holder, bits, soon)),
        },
    );
}

/// This transaction changes a policy, or creates the extension.
pub(crate) fn note_policy_change() {
    POLICY_CHANGED.set(true);
}

/// The transaction has committed.
pub(crate) fn at_commit() {
    let changed = POLICY_CHANGED.take();
    let noted = NOTED.with_borrow_mut(std::mem::take);
    if !changed && noted.is_empty() {
        return;
    }
    let database = background::my_database().to_u32();
    if changed {
        tell_of_change(database);
    }
    if noted.is_empty() {
        return;
    }
    // Rows of a long transaction may have expired before it commits.
    let long = background::transaction_age() >= LONG_TRANSACTION;
    let mut wake = false;
    for (holder, bits, soon) in noted {
        let bits = if long { bits | KEPT_TS } else { bits };
        let mark = shared::mark(shared::mark_number(database, holder));
        mark.fetch_or(bits, Ordering::SeqCst);
        wake |= soon || long;
    }
    let Some(slot) = shared::database(database) else {
        // The worker that comes first looks at every table.
        return;
    };
    // After the marks: each worker looks at those of its tables if it has changed.
    slot.writes.fetch_add(1, Ordering::SeqCst);
    if !wake {
        return;
    }
    slot.urgent.fetch_add(1, Ordering::SeqCst);
    // Who waits sets this first, and then looks at the count. Loaded first: most commits find
    // it down.
    if slot.wants_wake.load(Ordering::SeqCst) && slot.wants_wake.swap(false, Ordering::SeqCst) {
        shared::wake(database);
    }
}

/// A transaction that was prepared has committed: this was noted of it. Told when the
/// present one commits, which is COMMIT PREPARED's own.
pub(super) fn note_prepared(holder: u32, bits: u8) {
    if holder == 0 {
        note_policy_change();
    } else {
        // Rows may have expired before it committed.
        NOTED.with_borrow_mut(|noted| noted.push((holder, bits | KEPT_TS, true)));
    }
}

/// The transaction has aborted, or was prepared. Should nobody tell when that one
/// commits, the database is looked at regularly.
pub(crate) fn at_other_end(is_prepared: bool) {
    let noted = NOTED.with_borrow_mut(std::mem::take);
    let changed = POLICY_CHANGED.take();
    if is_prepared {
        let tables = noted.into_iter().map(|(holder, bits, _)| (holder, bits));
        prepared::keep(tables.chain(changed.then_some((0, 0))));
    }
    if changed && is_prepared {
        let database = background::my_database().to_u32();
        if let Some(slot) = shared::allot_database(database) {
            slot.keep.store(true, Ordering::Relaxed);
        }
        tell_of_change(database);
    }
}

fn tell_of_change(database: u32) {
    if let Some(slot) = shared::allot_database(database) {
        slot.due.store(0, Ordering::Release);
        shared::wake(database);
    }
}

/// What has been written to the tables of this mark since the last call.
pub(super) fn take(number: usize) -> Writes {
    let mark = shared::mark(number);
    if mark.load(Ordering::Relaxed) == 0 {
        return Writes::default();
    }
    let bits = mark.swap(0, Ordering::SeqCst);
    Writes {
        any: bits & ANY != 0,
        kept_ts: bits & KEPT_TS != 0,
    }
}

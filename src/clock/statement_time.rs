//! When the running statement began.

use crate::pg::abi::externs;
use crate::pg::server::{background, parallel};
use crate::pg::session::xact;
use core::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// The statement's start; in REPEATABLE READ and SERIALIZABLE the transaction's, so that no row
/// vanishes within a snapshot. In a procedure that commits, transactions start later than the
/// statement: one that runs for ever must see rows expire. So must background processes, some of which
/// never say that a statement begins. Parallel workers go by their leader.
#[inline(never)]
pub(super) fn statement_now() -> i64 {
    if let Some(time) = parallel::leaders_number() {
        return time;
    }
    let transaction = transaction_now();
    if xact::has_one_snapshot() {
        return transaction;
    }
    externs::GetCurrentStatementStartTimestamp().max(transaction)
}

/// The time in a background process, in the present transaction; 0: it was not asked for yet.
static IN_BACKGROUND: AtomicI64 = AtomicI64::new(0);

/// The transaction's start. In a background process, for which that may stand still at the process's own
/// start, the time at which this was first asked for in the transaction.
fn transaction_now() -> i64 {
    let start = externs::GetCurrentTransactionStartTimestamp();
    if !background::is_background() {
        return start;
    }
    let kept = match IN_BACKGROUND.load(Relaxed) {
        0 => externs::GetCurrentTimestamp(),
        kept => kept,
    };
    IN_BACKGROUND.store(kept, Relaxed);
    kept.max(start)
}

/// The transaction has ended. Raises no error.
pub(crate) fn forget() {
    IN_BACKGROUND.store(0, Relaxed);
}

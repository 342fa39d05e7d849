//! How large a batch is, and in which order a table is swept. Pure.

use std::time::Duration;

/// How long a batch should take: too short to be noticed by other sessions.
const TARGET: Duration = Duration::from_millis(50);
/// A busy server alone makes no batch smaller than this.
const SMALL: f64 = 1000.0;
/// The first batch at a table.
const FIRST: u32 = 500;

/// The size of the first batch.
pub(crate) fn first(most: u32) -> u32 {
    FIRST.min(most.max(1))
}

/// The size of the next batch, after one of `size` that changed `touched` rows (with cascades)
/// in `took`, while the worker deletes this `share` of its time.
///
/// At most twice as large; smaller in proportion if it took too long or changed too much. On a
/// busy server, where the share is small, batches are small, too, not only rare: whoever commits
/// next waits for the WAL written before.
pub(crate) fn after_success(size: u32, touched: u64, took: Duration, most: u32, share: f64) -> u32 {
    let took = took.as_secs_f64().max(1e-6);
    let touched = touched.max(1) as f64;
    let room = |share: f64| {
        let by_time = TARGET.as_secs_f64() * share / took;
        let by_rows = f64::from(most) * share / touched;
        f64::from(size) * by_time.min(by_rows)
    };
    // For small batches the fixed cost counts for more than the rows.
    let size_now = f64::from(size);
    let size = room(share.clamp(0.0, 1.0))
        .max(room(1.0).min(SMALL))
        .clamp(size_now / 4.0, size_now * 2.0);
    // Conversions of floats saturate.
    (size as u32).clamp(1, most.max(1))
}

/// The size of the next batch after one that failed. `None`: it was a single row, which is the
/// one that cannot be deleted.
pub(crate) fn after_failure(size: u32) -> Option<u32> {
    (size > 1).then_some(size / 2)
}

/// The same after one that took too long: each attempt costs its time limit.
pub(crate) fn after_timeout(size: u32) -> Option<u32> {
    (size > 1).then_some((size / 16).max(1))
}

/// Whether an estimated number of expired rows in a table of a number of blocks is deleted in heap order, which reads
/// everything, but each block once; in index order only expired rows are read. With more than one in two blocks, index
/// order would read nearly every block anyway, perhaps several times.
pub(crate) fn is_for_heap(expired: u64, blocks: u64) -> bool {
    const FEW: u64 = 20_000;
    expired >= FEW && expired >= blocks / 2
}

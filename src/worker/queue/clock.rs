//! The wall clock against the monotonic one. Pure: microseconds.
//!
//! The schedule is by the monotonic clock, which nothing sets. Rows expire by the wall clock. Where that
//! jumps, rows may seem to have expired that have not: they stay hidden, but are not deleted for
//! `ttl.change_delay`, so that an administrator can correct the clock.

/// The wall clock may drift, or be adjusted, by this much at once.
const JUMP: i64 = 60_000_000;
/// A smaller step is not worth scanning all tables anew.
const STEP: i64 = 500_000;

/// Whether the wall clock was set by more than a minute between two comparisons of the clocks.
pub(in crate::worker) fn has_jumped(before: i64, now: i64) -> bool {
    before.abs_diff(now) > JUMP.unsigned_abs()
}

/// Whether rows expire earlier or later than the schedule expects.
pub(in crate::worker) fn has_moved(before: i64, now: i64) -> bool {
    before.abs_diff(now) > STEP.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_adjustments_are_no_jump() {
        assert!(!has_jumped(1_000, 1_000 + JUMP));
        assert!(!has_jumped(1_000 + JUMP, 1_000));
        assert!(!has_moved(0, STEP));
        assert!(has_moved(0, STEP + 1));
        assert!(has_moved(STEP + 1, 0));
    }

    #[test]
    fn both_directions_count() {
        assert!(has_jumped(0, JUMP + 1));
        assert!(has_jumped(JUMP + 1, 0));
        assert!(has_jumped(i64::MIN, i64::MAX));
    }
}

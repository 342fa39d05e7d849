//! Rows that stay on disk after they have expired (C23, C24).

use super::expiry::MICROS_PER_SECOND;
use super::label::Policy;

/// What a number of seconds is in microseconds.
pub(crate) fn micros(seconds: i32) -> i64 {
    i64::from(seconds) * MICROS_PER_SECOND
}

/// The time by which deletion in the background judges rows that are kept for a number of seconds
/// (C23): what is expired by it, has been expired for as long.
pub(crate) fn lagging(now: i64, keep: i32) -> i64 {
    now.saturating_sub(micros(keep))
}

impl Policy {
    /// Whether rows can expire, or be deleted, sooner by this policy than by the former one.
    pub(crate) fn shortens(&self, former: Option<&Self>) -> bool {
        let Some(former) = former.filter(|former| former.is_on()) else {
            return self.is_on();
        };
        let is_shorter = |rule: &super::IndexRule| {
            former.rule(&rule.index).is_none_or(|old| {
                rule.expire_after_seconds < old.expire_after_seconds
                    || rule.time_zone != old.time_zone
            })
        };
        self.is_on()
            && (self.longest_life() < former.longest_life()
                || self.keep_expired < former.keep_expired
                || self.columns().ne(former.columns())
                || self.rules.iter().any(is_shorter))
    }

    /// Until when a change of the policy keeps rows on disk (C24).
    pub(crate) fn waits_until(&self, now: i64, delay: i64) -> Option<i64> {
        self.local
            .shortened
            .and_then(|shortened| shortened.waits_until(now, delay))
    }
}

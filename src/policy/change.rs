//! How a policy changes, and which changes make expired rows live again.

use super::expiry::MICROS_PER_SECOND;
use super::label::Policy;
use super::rule::IndexRule;

impl Policy {
    /// Makes the index a TTL index with this rule.
    pub(crate) fn set_rule(&mut self, rule: IndexRule) {
        match self.rules.iter_mut().find(|it| it.index == rule.index) {
            Some(present) => *present = rule,
            None => self.rules.push(rule),
        }
    }

    /// Makes the index an ordinary one.
    pub(crate) fn remove_rule(&mut self, index: &str) {
        self.rules.retain(|rule| rule.index != index);
    }

    /// The policy with TTL turned off (C9): no default and no TTL index. The columns stay, so
    /// that overrides count when TTL is turned on again (C4).
    pub(crate) fn turned_off(&self) -> Self {
        let mut off = self.clone();
        off.default_ttl = None;
        off.rules.clear();
        off.local.shortened = None;
        off
    }

    /// Whether a change can make expired, hidden rows live again for good: TTL off, a default or
    /// TTL index removed, or a longer time. `None` is no policy.
    ///
    /// Another time zone is no such change (M13): it says what the dates have meant all along, so rows
    /// that only the former zone had expired live again.
    ///
    /// Showing them is no such change: they stay expired, and are seen until a worker deletes
    /// them, which is what was asked for.
    pub(crate) fn revives(&self, to: Option<&Self>) -> bool {
        if !self.hidden || !self.is_on() {
            return false;
        }
        let Some(to) = to else { return true };
        // D1: where documents begin to override, one may have more seconds than the default.
        let overrides = self.default_ttl.is_some() && self.document_column != to.document_column;
        self.revives_by_default(to) || overrides || self.reviving_rules(to).next().is_some()
    }

    /// Whether rows live longer by the default of the other policy.
    pub(crate) fn revives_by_default(&self, to: &Self) -> bool {
        to.longest_life() > self.longest_life()
    }

    /// How long a row may live by the default and its override, in an order that a change can be judged by.
    pub(super) fn longest_life(&self) -> i64 {
        match self.default_ttl {
            // C4: while TTL is off nothing expires by an override or default.
            None => i64::MAX,
            // C9: without a default overrides still count.
            Some(-1) => i64::MAX - 1,
            Some(seconds) => i64::from(seconds),
        }
    }

    /// The TTL indexes that the other policy lacks or gives more seconds.
    pub(crate) fn reviving_rules(&self, to: &Self) -> impl Iterator<Item = &IndexRule> {
        self.rules.iter().filter(|rule| {
            to.rule(&rule.index)
                .is_none_or(|new| new.expire_after_seconds > rule.expire_after_seconds)
        })
    }

    /// Follows the renaming of a column; false if the policy does not name it.
    pub(crate) fn rename_column(&mut self, old: &str, new: &str) -> bool {
        let mut renamed = false;
        let columns = [
            &mut self.ts_column,
            &mut self.ttl_column,
            &mut self.document_column,
        ];
        for column in columns.into_iter().flatten() {
            if column == old {
                *column = new.to_owned();
                renamed = true;
            }
        }
        if renamed {
            self.added.rename_column(old, new);
        }
        renamed
    }

    /// Follows the renaming of an index; false if the policy does not name it.
    pub(crate) fn rename_index(&mut self, old: &str, new: &str) -> bool {
        let rule = self.rules.iter_mut().find(|rule| rule.index == old);
        rule.map(|rule| new.clone_into(&mut rule.index)).is_some()
    }
}

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

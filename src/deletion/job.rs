//! What a batch needs to know of the table that it deletes from.

use super::expiry_keys::{self, ExpiryKey, ExpiryKind, IndexPosition};
use super::set_aside::tid_array;
use crate::pg::catalog::{self, qualified_name};
use crate::pg::exec::query::{self, Sql};
use crate::pg::session::gate::GateVisit;
use crate::policy::micros;
use crate::store::{Rule, TablePolicy, cache, kept_condition, live_condition};
use crate::visibility::planned_statement;
use pgrx::pg_sys;
use std::rc::Rc;

/// How rows are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeletionWay {
    /// By the table access method: DELETE has no side effects.
    Direct,
    /// The same; AFTER triggers and foreign keys are queued, and fire at the end of the batch.
    Queuing,
    /// By DELETE: there are other triggers, rules, or another table access method.
    Sql,
}

/// A table or partition, and how its expired rows are found and deleted.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) relid: pg_sys::Oid,
    /// The number of its file, which TRUNCATE and rewrites replace.
    pub(crate) file: u32,
    /// Qualified and quoted.
    pub(crate) name: String,
    pub(crate) policy: Rc<TablePolicy>,
    pub(crate) expiry_keys: Vec<ExpiryKey>,
    /// The column of overrides, quoted.
    ttl_column: Option<String>,
    /// The tables that its queries may name, if they name any.
    pub(crate) named: Vec<pg_sys::Oid>,
    /// "The row is to be deleted, and one of this table": whatever the name means when the query runs.
    expired: String,
}

/// The condition of rows that are left, if expired ones are kept for a number of seconds.
pub(super) fn still_kept(policy: &TablePolicy, keep: i32) -> String {
    if keep == 0 {
        live_condition(policy.label.default_ttl)
    } else {
        kept_condition(keep)
    }
}

impl Job {
    /// For a table that the caller has locked; `None` if nothing in it can expire. It deletes
    /// whatever is expired, but in copies of a reference table.
    pub(crate) fn of(relid: pg_sys::Oid) -> Option<Self> {
        Self::keeping(relid, |policy| policy.reference_margin())
    }

    /// As [`Self::of`], of all that is expired, also in a copy of a reference table.
    pub(crate) fn of_all(relid: pg_sys::Oid) -> Option<Self> {
        Self::keeping(relid, |_| 0)
    }

    /// As [`Self::of`], but rows stay for as long as the policy keeps them (C23): a row "expires"
    /// by its expiry keys when it is to be deleted.
    pub(crate) fn lagging(relid: pg_sys::Oid) -> Option<Self> {
        Self::keeping(relid, |policy| policy.keep_expired)
    }

    fn keeping(relid: pg_sys::Oid, keep: impl Fn(&TablePolicy) -> i32) -> Option<Self> {
        let policy = cache::policy(relid).filter(|policy| policy.expires())?;
        let keep = keep(&policy);
        let mut expiry_keys = expiry_keys::of(relid, &policy);
        for expiry_key in &mut expiry_keys {
            expiry_key.offset += micros(keep);
        }
        Some(Self {
            relid,
            file: catalog::file(relid),
            name: qualified_name(relid),
            expiry_keys,
            ttl_column: policy
                .label
                .ttl_column
                .as_deref()
                .map(catalog::quote_identifier),
            named: vec![],
            // A CASE, which the planner cannot look into: else it would expect hardly any row.
            expired: format!(
                "CASE WHEN {} THEN false ELSE tableoid OPERATOR(pg_catalog.=) {}::pg_catalog.oid END",
                still_kept(&policy, keep),
                relid.to_u32()
            ),
            policy,
        })
    }

    /// From now on reads the table's blocks, and no index.
    pub(crate) fn read_all(&mut self) {
        for expiry_key in &mut self.expiry_keys {
            expiry_key.is_ordered = false;
        }
    }

    /// Whether the table's blocks must be read.
    pub(crate) fn reads_all(&self) -> bool {
        let mut expiry_keys = self.expiry_keys.iter();
        expiry_keys.any(|expiry_key| !expiry_key.is_ordered)
    }

    /// The same instant for each expiry key, by its number.
    pub(crate) fn cutoffs(&self, instant: i64) -> Vec<i64> {
        let expiry_keys = self
            .expiry_keys
            .iter()
            .map(|expiry_key| expiry_key.number + 1);
        vec![instant; expiry_keys.max().unwrap_or(0)]
    }

    /// Selects the expired rows of one expiry key, `ctid` and key, after `from`.
    pub(crate) fn index_sweep(
        &self,
        expiry_key: &ExpiryKey,
        from: IndexPosition,
        now: i64,
        excluded: &str,
        limit: u32,
    ) -> String {
        let from = expiry_key.from(from);
        format!(
            "SELECT ctid, {} WHERE {} AND {}{from} AND {}{excluded} ORDER BY {} LIMIT {limit}",
            expiry_key.instant,
            expiry_key.predicate,
            expiry_key.at_or_before(now.saturating_sub(expiry_key.offset)),
            self.expired,
            expiry_key.order
        )
    }

    /// Selects the expired rows of all expiry keys in these blocks, in heap order, after the row
    /// `after` of the first block.
    pub(crate) fn heap_sweep(
        &self,
        from: i64,
        after: u16,
        to: i64,
        excluded: &str,
        limit: u32,
    ) -> String {
        format!(
            "SELECT ctid, NULL::pg_catalog.timestamptz \
             WHERE ctid OPERATOR(pg_catalog.>) '({from},{after})'::pg_catalog.tid \
             AND ctid OPERATOR(pg_catalog.<) '({to},0)'::pg_catalog.tid AND {}{excluded} LIMIT {limit}",
            self.expired
        )
    }

    /// Selects those of these rows that are expired.
    pub(crate) fn expired_at(&self, rows: &[(u32, u16)]) -> String {
        format!(
            "SELECT ctid, NULL::pg_catalog.timestamptz WHERE ctid OPERATOR(pg_catalog.=) ANY ({}) AND {}",
            tid_array(rows.iter().copied()),
            self.expired
        )
    }

    /// The condition "a row whose expiry key is past, and", for a session's own statement; it
    /// lets the planner use the indexes. Empty if one is missing, as the table is read then
    /// anyway.
    pub(crate) fn past(&self) -> String {
        // In a scan of the table, expressions would be evaluated for rows that the indexes leave out.
        if self.reads_all() || self.policy.rules.iter().any(Rule::guards_expression) {
            return String::new();
        }
        let expiry_keys: Vec<String> = self.expiry_keys.iter().map(ExpiryKey::past).collect();
        format!("({}) AND ", expiry_keys.join(" OR "))
    }

    /// Selects those of these rows that are expired, for [`Sql::delete_from`].
    pub(crate) fn expired_among(&self, condition: &str) -> String {
        format!("SELECT 1 WHERE {condition}{}", self.expired)
    }

    /// Deletes those of these rows that are expired, in a statement that names the table.
    pub(crate) fn delete(&self, condition: &str) -> String {
        format!(
            "DELETE FROM ONLY {} WHERE {condition}{}",
            self.name, self.expired
        )
    }

    /// Selects those of these rows that are expired and still there.
    pub(crate) fn remaining(&self, condition: &str) -> String {
        format!(
            "SELECT ctid, NULL::pg_catalog.timestamptz WHERE {condition}{}",
            self.expired
        )
    }

    /// Selects when the first row of an expiry key with an ordered index expires after those that
    /// were expired at `cutoff`.
    pub(crate) fn next_key(&self, expiry_key: &ExpiryKey, cutoff: i64) -> String {
        format!(
            "SELECT {} OPERATOR(pg_catalog.+) '{} microseconds'::pg_catalog.interval \
             WHERE {} AND {} AND {} ORDER BY {} LIMIT 1",
            expiry_key.instant,
            expiry_key.offset,
            expiry_key.predicate,
            expiry_key.after(cutoff.saturating_sub(expiry_key.offset)),
            expiry_key.before_the_end(),
            expiry_key.order
        )
    }

    /// Selects when the first row in these blocks expires, of those that no index leads to, and the least override.
    pub(crate) fn first_read(&self, (from, to): (u32, u32)) -> String {
        let read = |key: &&ExpiryKey| !key.is_ordered;
        let firsts = self.expiry_keys.iter().filter(read).map(|key| {
            format!(
                "pg_catalog.min(CASE WHEN {} AND {} \
                 THEN {} OPERATOR(pg_catalog.+) '{} microseconds'::pg_catalog.interval END)",
                key.predicate,
                key.before_the_end(),
                key.instant,
                key.offset,
            )
        });
        let least_override = match &self.ttl_column {
            Some(ttl) => {
                format!("pg_catalog.min(CASE WHEN {ttl} OPERATOR(pg_catalog.>) 0 THEN {ttl} END)")
            }
            None => "NULL::pg_catalog.int4".to_owned(),
        };
        format!(
            "SELECT LEAST({}), {least_override} WHERE ctid OPERATOR(pg_catalog.>) '({from},0)'::pg_catalog.tid \
             AND ctid OPERATOR(pg_catalog.<) '({to},0)'::pg_catalog.tid",
            firsts.collect::<Vec<_>>().join(", ")
        )
    }

    /// How soon a row that is written from now on can be due, of those that no index leads to, in microseconds, if no
    /// override is less than `least_override` seconds; `None` if it cannot.
    pub(crate) fn soonest(&self, least_override: Option<i32>) -> Option<i64> {
        let read = self.expiry_keys.iter();
        let read = read.filter(|key| !key.is_ordered);
        // An UPDATE may leave a `_ts` that is so old (C16).
        let granularity = self.policy.label.ts_granularity;
        let soonest = read.filter_map(|key| match key.kind() {
            ExpiryKind::Inheriting => Some(key.offset - micros(granularity)),
            ExpiryKind::Overriding => {
                let least = least_override?;
                let written = micros(least - granularity.min(least / 2));
                Some(written.saturating_add(key.offset))
            }
            // Whatever its date is.
            ExpiryKind::OfRule => Some(0),
        });
        soonest.min()
    }

    /// Selects the expired rows of the table and of all that inherit from it, each as one value: a
    /// column of that name would hide the row.
    pub(crate) fn select_expired(&self) -> String {
        format!(
            "SELECT COALESCE(kept.*) FROM {} AS kept WHERE {}{}",
            self.name,
            self.past(),
            self.gone()
        )
    }

    /// Stamps those of the same rows anew for which the condition holds and that live then. The
    /// condition stands on lines of its own: it may end with a comment.
    pub(crate) fn update_expired(&self, ts: &str, condition: &str) -> String {
        let by_rules = if self.policy.rules.is_empty() {
            String::new()
        } else {
            format!(" AND {}", live_condition(None))
        };
        format!(
            "UPDATE {} SET {ts} = ttl.current_ts() WHERE {}{}{by_rules} AND (\n{condition}\n)",
            self.name,
            self.past(),
            self.gone()
        )
    }

    /// Counts those that stay expired then, by their dates; `None` if the table has no such rows.
    pub(crate) fn count_expired_by_rules(&self, condition: &str) -> Option<String> {
        (!self.policy.rules.is_empty()).then(|| {
            format!(
                "SELECT pg_catalog.count(*) FROM {} WHERE CASE WHEN {} THEN false ELSE true END AND (\n{condition}\n)",
                self.name,
                live_condition(None)
            )
        })
    }

    /// "The row is expired."
    fn gone(&self) -> String {
        let live = live_condition(self.policy.label.default_ttl);
        format!("CASE WHEN {live} THEN false ELSE true END")
    }

    /// The first row of a query over the table, such as [`Self::next_key`], whose columns are of pass-by-value types.
    pub(super) fn first_row<const N: usize>(
        &self,
        visit: &GateVisit,
        query: &str,
    ) -> Option<[Option<pg_sys::Datum>; N]> {
        let query = Sql::over(self.relid, query).among(&self.named);
        planned_statement::with_expired_rows_of(self.relid, || query::first_row(visit, query, &[]))
    }

    /// Counts the expired rows in these blocks.
    pub(crate) fn count_in(&self, (from, to): (u32, u32)) -> String {
        format!(
            "SELECT pg_catalog.count(*) WHERE ctid OPERATOR(pg_catalog.>) '({from},0)'::pg_catalog.tid \
             AND ctid OPERATOR(pg_catalog.<) '({to},0)'::pg_catalog.tid AND {}",
            self.expired
        )
    }
}

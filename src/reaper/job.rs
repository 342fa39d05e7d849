//! What a batch needs to know of the table that it deletes from.

use crate::pg::catalog::{self, qualified_name, quote_identifier};
use crate::pg::index::{self, Wanted};
use crate::policy::Policy;
use crate::store::{TablePolicy, cache, governing_label, live_condition};
use pgrx::pg_sys;

/// How rows are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deleting {
    /// By the table access method: nobody else has to do with it.
    Direct,
    /// By DELETE: triggers, rules, foreign keys.
    Sql,
}

/// What serves to find rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// A btree index, in order.
    Ordered,
    /// Another index.
    Unordered,
    /// None: the table has to be read.
    Scan,
}

/// Rows that expire by one rule: those that inherit the default, or those that
/// override it.
#[derive(Debug, Clone)]
pub(super) struct Lane {
    /// Its place in [`super::state::Progress::low`].
    pub(super) number: usize,
    /// The value by which the index is ordered.
    pub(super) key: String,
    /// What the rows have in common.
    predicate: String,
    /// A row expires this many microseconds after its key.
    pub(super) offset: i64,
    pub(super) access: Access,
}

/// A table or partition, and how its expired rows are found and deleted.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) relid: pg_sys::Oid,
    /// Qualified and quoted.
    pub(super) name: String,
    pub(super) policy: TablePolicy,
    pub(super) lanes: Vec<Lane>,
    /// "The row is expired, and one of this table": whatever its name stands for
    /// by the time the query runs.
    expired: String,
}

const MICROS_PER_SECOND: i64 = 1_000_000;

impl Job {
    /// For a table that the caller has locked; `None` if nothing in it can expire.
    pub(super) fn of(relid: pg_sys::Oid) -> Option<Self> {
        let policy = cache::policy(relid).filter(TablePolicy::hides)?;
        let label = governing_label(relid)?.policy;
        Some(Self {
            relid,
            name: qualified_name(relid),
            lanes: lanes(relid, &label, &policy),
            // A CASE: the planner knows nothing of it, and so does not think that
            // next to no row is left.
            expired: format!(
                "CASE WHEN {} THEN false ELSE tableoid OPERATOR(pg_catalog.=) {}::pg_catalog.oid END",
                live_condition(&label, label.default_ttl),
                relid.to_u32()
            ),
            policy,
        })
    }

    /// Selects the expired rows of one lane, `ctid` and key, from `low` on.
    pub(super) fn trickle(
        &self,
        lane: &Lane,
        low: i64,
        now: i64,
        excluded: &str,
        limit: u32,
    ) -> String {
        let key = &lane.key;
        let from = if low == i64::MIN {
            String::new()
        } else {
            format!(" AND {key} OPERATOR(pg_catalog.>=) {}", timestamp(low))
        };
        let order = match lane.access {
            Access::Ordered => format!(" ORDER BY {key}"),
            _ => String::new(),
        };
        format!(
            "SELECT ctid, {key} FROM ONLY {} WHERE {} AND {key} OPERATOR(pg_catalog.<=) {}{from} \
             AND {}{excluded}{order} LIMIT {limit}",
            self.name,
            lane.predicate,
            timestamp(now.saturating_sub(lane.offset)),
            self.expired
        )
    }

    /// Selects the expired rows of all lanes in these blocks, in heap order,
    /// after the row `after` of the first block.
    pub(super) fn blocks(
        &self,
        from: i64,
        after: u16,
        to: i64,
        excluded: &str,
        limit: u32,
    ) -> String {
        format!(
            "SELECT ctid, NULL::pg_catalog.timestamptz FROM ONLY {} \
             WHERE ctid OPERATOR(pg_catalog.>) '({from},{after})'::pg_catalog.tid \
             AND ctid OPERATOR(pg_catalog.<) '({to},0)'::pg_catalog.tid AND {}{excluded} LIMIT {limit}",
            self.name, self.expired
        )
    }

    /// The condition "a row of any lane whose key is past, and", for a session's own
    /// statement; by it the planner may use the indexes. Nothing if one is missing,
    /// as the table is read then anyway.
    pub(super) fn past(&self) -> String {
        if self.lanes.iter().any(|lane| lane.access == Access::Scan) {
            return String::new();
        }
        let lanes: Vec<String> = self
            .lanes
            .iter()
            .map(|lane| {
                format!(
                    "({} AND {} OPERATOR(pg_catalog.<=) \
                     (ttl.now() OPERATOR(pg_catalog.-) '{} microseconds'::pg_catalog.interval))",
                    lane.predicate, lane.key, lane.offset
                )
            })
            .collect();
        format!("({}) AND ", lanes.join(" OR "))
    }

    /// Deletes those of these rows that are expired.
    pub(super) fn delete(&self, condition: &str) -> String {
        format!(
            "DELETE FROM ONLY {} WHERE {condition}{}",
            self.name, self.expired
        )
    }

    /// Selects those of these rows that are expired and still there.
    pub(super) fn remaining(&self, condition: &str) -> String {
        format!(
            "SELECT ctid, NULL::pg_catalog.timestamptz FROM ONLY {} WHERE {condition}{}",
            self.name, self.expired
        )
    }

    /// Selects, for each lane that has an ordered index, the first key after
    /// those that were expired at `cutoffs`.
    pub(super) fn next_keys(&self, cutoffs: &[i64; 2]) -> Option<String> {
        let probes: Vec<String> = self
            .lanes
            .iter()
            .filter(|lane| lane.access == Access::Ordered)
            .map(|lane| {
                let key = &lane.key;
                format!(
                    "(SELECT {key} OPERATOR(pg_catalog.+) '{} microseconds'::pg_catalog.interval FROM ONLY {} \
                     WHERE {} AND {key} OPERATOR(pg_catalog.>) {} \
                     AND {key} OPERATOR(pg_catalog.<) '290000-01-01 00:00:00+00'::pg_catalog.timestamptz ORDER BY {key} LIMIT 1)",
                    lane.offset,
                    self.name,
                    lane.predicate,
                    timestamp(cutoffs[lane.number].saturating_sub(lane.offset))
                )
            })
            .collect();
        (!probes.is_empty()).then(|| format!("SELECT LEAST({})", probes.join(", ")))
    }

    /// Counts a sample of the table: rows that are expired.
    pub(super) fn sample(&self, percent: f64) -> String {
        format!(
            "SELECT pg_catalog.count(*) FROM ONLY {} TABLESAMPLE SYSTEM ({percent}) WHERE {}",
            self.name, self.expired
        )
    }
}

/// An instant as a literal, exact whatever DateStyle and time zone.
fn timestamp(micros: i64) -> String {
    let epoch = "'2000-01-01 00:00:00+00'::pg_catalog.timestamptz";
    // An interval of microseconds has 64 bits, too; beyond the type's range
    // nothing is expired, and nothing is before.
    const FIRST: i64 = -211_813_488_000_000_000;
    if micros <= FIRST {
        return "'-infinity'::pg_catalog.timestamptz".to_owned();
    }
    format!("({epoch} OPERATOR(pg_catalog.+) '{micros} microseconds'::pg_catalog.interval)")
}

fn lanes(relid: pg_sys::Oid, label: &Policy, policy: &TablePolicy) -> Vec<Lane> {
    let ts = quote_identifier(&label.ts_column);
    let access = |wanted| {
        let serving = index::find(relid, wanted, &policy.ts, policy.ttl.as_ref());
        if serving.iter().any(|&index| catalog::is_btree(index)) {
            Access::Ordered
        } else if serving.is_empty() {
            Access::Scan
        } else {
            Access::Unordered
        }
    };
    let mut lanes = Vec::new();
    let ttl = label.ttl_column.as_deref().map(quote_identifier);
    if let Some(default) = policy.default_ttl.filter(|&default| default > 0) {
        let (predicate, wanted) = match &ttl {
            Some(ttl) => (format!("{ttl} IS NULL"), Wanted::InheritingByTimestamp),
            None => ("true".to_owned(), Wanted::AllByTimestamp),
        };
        lanes.push(Lane {
            number: 0,
            key: ts.clone(),
            predicate,
            offset: i64::from(default) * MICROS_PER_SECOND,
            access: access(wanted),
        });
    }
    if let Some(ttl) = ttl {
        lanes.push(Lane {
            number: 1,
            key: format!("ttl.expires_at({ts}, {ttl}, NULL)"),
            predicate: format!("{ttl} OPERATOR(pg_catalog.>) 0"),
            offset: 0,
            access: access(Wanted::OverridingByExpiry),
        });
    }
    lanes
}

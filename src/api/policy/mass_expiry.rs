//! C19: a change of policy tells how many rows it expires, and is refused where these are most of a
//! table, unless it is confirmed.

use super::guard;
use crate::citus;
use crate::error::{Error, Result};
use crate::pg::catalog::{self, qualified_name};
use crate::pg::exec::query::{self, Sql};
use crate::pg::exec::relation;
use crate::pg::session::gate::{self, GateVisit};
use crate::pg::session::locks;
use crate::settings;
use crate::store::{cache, live_condition};
use crate::visibility::planned_statement;
use pgrx::{PgSqlErrorCode, pg_sys};

/// Blocks that are read before and after a change: some milliseconds, however large the table is.
const BLOCKS: f64 = 256.0;
/// The most partitions that blocks are read from.
const TABLES: usize = 32;
/// Fewer rows than these may always expire.
const FEW_ROWS: f64 = 5000.0;

/// Whether the caller has confirmed a change that expires most of the table.
#[derive(Debug, Clone)]
pub(in crate::api) struct Consent {
    pub(in crate::api) confirmed: bool,
    /// How to confirm, for the end of a HINT's sentence.
    pub(in crate::api) how: String,
}

impl Consent {
    /// For a call whose arguments so far are these, without the closing bracket.
    pub(in crate::api) fn new(confirm: Option<bool>, call: &str) -> Result<Self> {
        Ok(Self {
            confirmed: guard::required(confirm, "confirm")?,
            how: format!("run: SELECT {call}, confirm => true);"),
        })
    }
}

/// The table as an argument, for a HINT.
pub(in crate::api) fn shown(relid: pg_sys::Oid) -> String {
    catalog::quote_literal(&qualified_name(relid))
}

/// Makes a change of the table's policy, which hides expired rows or not; tells of the rows that expire with it.
pub(in crate::api) fn watch(
    relid: pg_sys::Oid,
    hides: bool,
    consent: &Consent,
    change: impl FnOnce(),
) -> Result<()> {
    let tables = sample_of(relid);
    let before = tables.counted(expired_now);
    change();
    // The rows of the same blocks, by the new policy.
    let after = tables.counted(expired_now);
    let (expire, total) = (after.met - before.met, after.total);
    if expire < 0.5 {
        return Ok(());
    }
    let rows = format!(
        "{} of {total:.0} rows of table {}",
        after.shown(expire),
        qualified_name(relid)
    );
    let limit = settings::guard_fraction();
    if consent.confirmed || expire < FEW_ROWS || expire <= limit * total {
        let told = Error::for_notice(format!("this change expires {rows}"));
        match settings::change_delay() / 1_000_000 {
            0 => told.notice(),
            delay => told
                .detail(format!(
                    "They are {}deleted after {delay} seconds. Until then, undoing the change with revive_expired => true brings them back.",
                    if hides { "hidden now and " } else { "" }
                ))
                .notice(),
        }
        return Ok(());
    }
    Err(Error::new(
        PgSqlErrorCode::ERRCODE_CONFIGURATION_LIMIT_EXCEEDED,
        format!("this change would expire {rows}"),
    )
    .detail(format!(
        "They would be {}deleted. \"ttl.guard_fraction\" is {limit}.",
        if hides {
            "hidden at once, and then "
        } else {
            ""
        }
    ))
    .hint(format!("To confirm the change, {}", consent.how)))
}

/// How many rows of a table meet a condition.
pub(in crate::api) struct RowEstimate {
    pub(in crate::api) total: f64,
    pub(in crate::api) met: f64,
    is_exact: bool,
}

impl RowEstimate {
    /// A number for a message.
    pub(in crate::api) fn shown(&self, number: f64) -> String {
        let about = if self.is_exact { "" } else { "about " };
        format!("{about}{number:.0}")
    }
}

/// Estimates how many rows meet a condition on the table's columns, expired ones included.
pub(in crate::api) fn estimate(relid: pg_sys::Oid, condition: &str) -> RowEstimate {
    sample_of(relid).counted(|_| Some(condition.to_owned()))
}

/// The condition of rows that are expired by the policy that is in force now.
fn expired_now(table: pg_sys::Oid) -> Option<String> {
    Some(
        match cache::policy(table).filter(|policy| policy.expires()) {
            Some(policy) => format!("NOT {}", live_condition(policy.label.default_ttl)),
            None => "false".to_owned(),
        },
    )
}

/// Where a table's rows are counted.
struct Sample {
    tables: Vec<pg_sys::Oid>,
    /// Of each of these, so much is read;
    percent: f64,
    /// and they are this part of all.
    part: f64,
}

/// Chooses partitions spread evenly. Locks them as a query would.
fn sample_of(relid: pg_sys::Oid) -> Sample {
    let has_rows = |table: &pg_sys::Oid| {
        catalog::class(*table).is_some_and(|class| {
            let is_local = class.persistence != pg_sys::RELPERSISTENCE_TEMP;
            // A table of Citus has its rows in shards, and columns are not sampled.
            let is_read = !citus::is_shell(*table) && catalog::is_heap(*table);
            class.has_rows() && (is_local || *table == relid) && is_read
        })
    };
    let all: Vec<_> = citus::with_shards(&[relid])
        .into_iter()
        .filter(has_rows)
        .collect();
    let each = all.len().div_ceil(TABLES).max(1);
    let tables: Vec<_> = all.iter().copied().step_by(each).collect();
    let blocks = |&table: &pg_sys::Oid| {
        locks::relation(table, pg_sys::AccessShareLock);
        // It may have gone before it was locked.
        catalog::class(table).map_or(0, |_| relation::OpenRelation::locked(table).blocks())
    };
    let part = match all.len() {
        0 => 1.0,
        count => tables.len() as f64 / count as f64,
    };
    let blocks: f64 = tables.iter().map(|table| f64::from(blocks(table))).sum();
    Sample {
        percent: (100.0 * BLOCKS / blocks.max(1.0)).min(100.0),
        part,
        tables,
    }
}

impl Sample {
    /// Counts the rows that meet the condition, which may be another for each table.
    fn counted(&self, condition: impl Fn(pg_sys::Oid) -> Option<String>) -> RowEstimate {
        let counts = self.tables.iter().filter_map(|&table| {
            let condition = condition(table)?;
            self.count_in(table, &condition)
        });
        let [total, met] = counts.fold([0.0, 0.0], |[all, of_these], [total, met]| {
            [all + total, of_these + met]
        });
        let scale = 100.0 / self.percent / self.part;
        RowEstimate {
            total: total * scale,
            met: met * scale,
            is_exact: self.percent >= 100.0 && self.part >= 1.0,
        }
    }

    /// All rows, and those that meet the condition.
    fn count_in(&self, table: pg_sys::Oid, condition: &str) -> Option<[f64; 2]> {
        let query = format!(
            "SELECT pg_catalog.count(*), pg_catalog.count(*) FILTER (WHERE {condition}) \
             FROM ONLY {} TABLESAMPLE pg_catalog.system ({}) REPEATABLE (1)",
            qualified_name(table),
            self.percent
        );
        let look = |visit: &GateVisit| {
            planned_statement::with_expired_rows_of(table, || {
                query::first_row::<2>(visit, Sql::naming(&[table], &query), &[])
            })
        };
        // Planning a query on a table can run its owner's code.
        let counts = gate::visit(catalog::class(table)?.owner, look)?;
        Some(counts.map(|value| value.map_or(0.0, |it| it.value() as f64)))
    }
}

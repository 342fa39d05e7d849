//! Expired rows that live rows refer to, by foreign keys that keep them (NO ACTION, RESTRICT): told by the
//! referencing tables, all at once. By itself each would be found when a batch fails because of it.

use super::expiry_keys::IndexPosition;
use super::job::Job;
use super::probe;
use super::receiver::{self, FoundRow};
use crate::error::Error;
use crate::pg::abi::encoding;
use crate::pg::catalog::{self, foreign_key};
use crate::pg::exec::relation;
use crate::visibility::referential;
use pgrx::pg_sys;
use std::collections::HashSet;

/// The most rows that are counted.
const MOST: u32 = 100_000;

/// Which rows live rows refer to.
#[derive(Debug, Clone)]
pub(crate) struct Referred {
    /// "And there is one that refers to it", by one foreign key each.
    exists: Vec<String>,
    /// The referencing tables, and the table itself.
    pub(crate) tables: Vec<pg_sys::Oid>,
}

/// How many such rows there are, as far as they are counted, and when the first of them expired.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Count {
    pub(crate) rows: i64,
    pub(crate) oldest: Option<i64>,
}

impl Referred {
    /// The foreign keys whose tables have the same owner: reading others' runs code of theirs, and needs
    /// rights. Not of partitioned tables: a partition may have another owner. `None` if there is none.
    pub(crate) fn of(job: &Job) -> Result<Option<Self>, Error> {
        probe::look(job.relid, |_| Ok(by_catalog(job.relid)))
    }

    /// A condition that excludes these rows, to be appended to others.
    pub(crate) fn exclusion(&self) -> String {
        let each = self
            .exists
            .iter()
            .map(|exists| format!(" AND NOT {exists}"));
        each.collect()
    }

    fn condition(&self) -> String {
        format!(" AND ({})", self.exists.join(" OR "))
    }

    pub(crate) fn has(&self, job: &Job, row: FoundRow) -> Result<bool, Error> {
        let query = format!(
            "SELECT ctid, NULL::pg_catalog.timestamptz WHERE ctid OPERATOR(pg_catalog.=) '({},{})'::pg_catalog.tid{}",
            row.block,
            row.offset,
            self.condition()
        );
        probe::look(job.relid, |visit| {
            Ok(!receiver::collect(visit, job, &query, &[], 1).is_empty())
        })
    }

    /// How many there are.
    pub(crate) fn count(&self, job: &Job, cutoffs: &[i64]) -> Result<Count, Error> {
        let condition = self.condition();
        probe::look(job.relid, |visit| {
            let mut found = Count::default();
            // A row may expire by several keys.
            let mut distinct = HashSet::new();
            for expiry_key in job.expiry_keys.iter().filter(|key| key.is_ordered) {
                let cutoff = cutoffs[expiry_key.number];
                let query = job.index_sweep(
                    expiry_key,
                    IndexPosition::BEGINNING,
                    cutoff,
                    &condition,
                    MOST,
                );
                let rows = receiver::collect(visit, job, &query, &[], MOST as usize);
                distinct.extend(rows.iter().map(FoundRow::tid));
                let keys = rows.iter().filter_map(|row| row.key);
                let oldest = keys.min().map(|key| key.saturating_add(expiry_key.offset));
                found.oldest = [found.oldest, oldest].into_iter().flatten().min();
            }
            found.rows = distinct.len() as i64;
            if job.reads_all() {
                let blocks = relation::OpenRelation::locked(job.relid).blocks();
                let query = job.count_in((0, blocks)) + &condition;
                let [counted] = job.first_row(visit, &query).unwrap_or_default();
                found.rows = counted.map_or(0, |count| count.value() as i64);
            }
            Ok(found)
        })
    }
}

/// As [`Referred::of`], in a transaction that has locked the table.
pub(crate) fn by_catalog(relid: pg_sys::Oid) -> Option<Referred> {
    let own = catalog::class(relid)?.owner;
    let mut found = Referred {
        exists: vec![],
        tables: vec![relid],
    };
    for constraint in foreign_key::of_referenced(relid) {
        let Some(key) = foreign_key::get(constraint).filter(referential::keeps_referenced) else {
            continue;
        };
        let class = catalog::class(key.referencing);
        let is_own = class.is_some_and(|class| class.has_rows() && class.owner == own)
            && catalog::cascade::may_act_below(key.referencing, key.referencing);
        if key.referencing == relid || !is_own {
            continue;
        }
        let outer = catalog::quote_identifier(&catalog::relation_name(relid));
        let exists = referential::referring(&key, outer.as_bytes());
        found.exists.push(encoding::from_bytes(exists));
        found.tables.push(key.referencing);
    }
    (!found.exists.is_empty()).then_some(found)
}

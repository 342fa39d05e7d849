//! Which ranges of blocks a BRIN index leads to, and making its summaries anew
//! (`docs/decisions/0053-brin-by-ranges.md`).

use super::expiry_keys::ExpiryKey;
use super::job::{Access, Job};
use super::{probe, transaction};
use crate::error::Error;
use crate::pg::exec::brin::{self, Led};
use crate::pg::exec::query::{self, Sql};
use crate::pg::exec::relation;
use crate::pg::session::{locks, owner_session};
use crate::visibility::statement;
use pgrx::pg_sys;
use std::time::{Duration, Instant};

/// So many ranges are read, at most, to find out when the next row expires.
const RANGES: u64 = 8;
/// So long summaries are made in one transaction, whose lock makes VACUUM wait.
const TIME: Duration = Duration::from_millis(100);

/// The blocks that can hold rows whose key is from `low` to `high`; `None` if the index is gone.
pub(crate) fn lead(
    job: &Job,
    index: pg_sys::Oid,
    (low, high): (i64, i64),
) -> Result<Option<Led>, Error> {
    probe::look(job.relid, |_| {
        Ok(brin::lead(
            &relation::Open::locked(job.relid),
            index,
            (low, high),
        ))
    })
}

/// Summarises ranges of blocks, by their first; with `anew`, also those that are summarised.
/// Returns how many of them it has got to: none if the table is being vacuumed or altered.
pub(crate) fn summarise(
    job: &Job,
    index: pg_sys::Oid,
    ranges: &[u32],
    anew: bool,
) -> Result<usize, Error> {
    transaction::run(|| {
        // Conflicts with itself only; readers and writers of rows go on.
        if !locks::try_relation(job.relid, pg_sys::ShareUpdateExclusiveLock) {
            return Ok(0);
        }
        let is_there = brin::lead(&relation::Open::locked(job.relid), index, (0, 0)).is_some();
        if !is_there {
            return Ok(0);
        }
        let visit = owner_session::visit(job.relid)?;
        let began = Instant::now();
        let mut done = 0;
        for &block in ranges {
            brin::summarise(&visit, index, block, anew);
            done += 1;
            if began.elapsed() >= TIME {
                break;
            }
        }
        Ok(done)
    })
}

/// What is ahead in a table whose rows are found by BRIN indexes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ahead {
    /// When the next row expires,
    pub(crate) expiry: Option<i64>,
    /// and when to look for it at the latest.
    pub(crate) look: Option<i64>,
}

/// Looks in a few ranges for the row that expires next after those that were expired at
/// `cutoffs`, within `within` microseconds, or as far as few ranges tell.
pub(crate) fn ahead(job: &Job, cutoffs: &[i64], within: i64) -> Result<Ahead, Error> {
    let mut nearest = Ahead::default();
    for expiry_key in &job.expiry_keys {
        let Access::Ranges(index) = expiry_key.access else {
            continue;
        };
        let after = cutoffs[expiry_key.number];
        let found = ahead_by(job, expiry_key, index, after, within)?;
        let earlier = |a: Option<i64>, b: Option<i64>| a.into_iter().chain(b).min();
        nearest.expiry = earlier(nearest.expiry, found.expiry);
        nearest.look = earlier(nearest.look, found.look);
    }
    Ok(nearest)
}

fn ahead_by(
    job: &Job,
    expiry_key: &ExpiryKey,
    index: pg_sys::Oid,
    after: i64,
    within: i64,
) -> Result<Ahead, Error> {
    probe::look(job.relid, |visit| {
        const NEAREST: i64 = 1_000_000;
        let table = relation::Open::locked(job.relid);
        let mut span = within.max(NEAREST);
        loop {
            let until = after.saturating_add(span);
            let keys = (
                after.saturating_sub(expiry_key.offset).saturating_add(1),
                until.saturating_sub(expiry_key.offset),
            );
            let Some(led) = brin::lead(&table, index, keys) else {
                return Ok(Ahead::default());
            };
            if led.count() > RANGES * u64::from(led.range) {
                // Nothing is known, if the rows have no order at all.
                if span <= NEAREST {
                    return Ok(Ahead::default());
                }
                span /= 4;
                continue;
            }
            let firsts = led.to.iter().filter_map(|blocks| {
                let query = job.first_between(expiry_key, (after, until), (blocks.from, blocks.to));
                statement::with_expired_rows_of(job.relid, || {
                    query::first_value(visit, Sql::over(job.relid, &query), &[])
                })
            });
            let expiry = firsts.map(|instant| instant.value() as i64).min();
            return Ok(Ahead {
                expiry,
                look: expiry.or((span < within).then_some(until)),
            });
        }
    })
}

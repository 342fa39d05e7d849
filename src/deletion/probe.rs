//! Looks at a table without deleting: how much there is to delete, and when.

use super::expiry_keys::{ExpiryKey, ExpiryKind, IndexPosition};
use super::job::Job;
use super::receiver::{self, FoundRow};
use super::set_aside::SetAside;
use super::worker_transaction;
use crate::error::Error;
use crate::pg::catalog;
use crate::pg::exec::relation;
use crate::pg::session::gate::GateVisit;
use crate::pg::session::{self, locks, owner_session};
use crate::policy::IndexMethod;
use crate::settings;
use crate::store::missing_index;
use crate::store::{TablePolicy, cache, governing_label};
use pgrx::pg_sys;
use std::collections::HashSet;
use std::rc::Rc;

/// How much there is to delete.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Estimate {
    pub(crate) expired: u64,
    pub(crate) blocks: u32,
}

/// Runs `look` in a transaction of its own, as the table's owner, with a weak lock on the table
/// if that needs no waiting.
pub(super) fn look<T>(
    relid: pg_sys::Oid,
    look: impl FnOnce(&GateVisit) -> Result<T, Error>,
) -> Result<T, Error> {
    worker_transaction::run(|| {
        locks::relation_or_busy(relid, pg_sys::AccessShareLock)?;
        let visit = owner_session::visit(relid)?;
        session::index_only(|| look(&visit))
    })
}

/// What a sweep of the table needs; `None` if nothing in it can expire, or its policy has been
/// restored meanwhile.
pub(crate) fn job(relid: pg_sys::Oid) -> Result<Option<Job>, Error> {
    worker_transaction::run(|| {
        // C21: nor while its indexes are still to be built.
        let bound = governing_label(relid)
            .is_some_and(|label| !label.policy.build_pending && !label.policy.restored);
        let lacks_rows =
            |policy: Rc<TablePolicy>| policy.is_shell() || policy.is_unfinished_copy(relid);
        Ok(if bound && !cache::policy(relid).is_some_and(lacks_rows) {
            Job::lagging(relid)
        } else {
            None
        })
    })
}

/// Whether the table has a policy that is in force.
pub(crate) fn has_policy(relid: pg_sys::Oid) -> Result<bool, Error> {
    worker_transaction::run(|| Ok(governing_label(relid).is_some_and(|label| label.policy.is_on())))
}

/// The blocks of a sample: ranges of equal size, evenly spread.
const RANGES: u32 = 20;
const RANGE: u32 = 10;

/// Estimates from a sample of some 200 blocks how many rows are expired.
pub(crate) fn estimate(job: &Job) -> Result<Estimate, Error> {
    look(job.relid, |visit| {
        let blocks = relation::OpenRelation::locked(job.relid).blocks();
        let count = |blocks: (u32, u32)| {
            let query = job.count_in(blocks);
            let [counted] = job.first_row(visit, &query).unwrap_or_default();
            counted.map_or(0, |count| count.value() as u64)
        };
        if is_sampled_whole(blocks) {
            let expired = count((0, blocks));
            return Ok(Estimate { expired, blocks });
        }
        let first =
            |number: u32| (u64::from(blocks) * u64::from(number) / u64::from(RANGES)) as u32;
        let counted: u64 = (0..RANGES)
            .map(|number| count((first(number), first(number) + RANGE)))
            .sum();
        let expired = counted.saturating_mul(u64::from(blocks)) / u64::from(RANGES * RANGE);
        Ok(Estimate { expired, blocks })
    })
}

/// The first block from `from` to before `to` that cannot be read; `None` if all can.
pub(crate) fn unreadable(job: &Job, (mut from, mut to): (u32, u32)) -> Result<Option<u32>, Error> {
    let is_readable = |blocks| {
        let read = look(job.relid, |visit| {
            job.first_row::<1>(visit, &job.count_in(blocks));
            Ok(())
        });
        match read {
            Err(failure) if failure.may_be_of_a_block() => Ok(false),
            read => read.map(|()| true),
        }
    };
    if is_readable((from, to))? {
        return Ok(None);
    }
    while to - from > 1 {
        let middle = from + (to - from) / 2;
        if is_readable((from, middle))? {
            from = middle;
        } else {
            to = middle;
        }
    }
    Ok(Some(from))
}

/// Whether [`estimate`] reads every block of a table with this number of blocks.
pub(crate) fn is_sampled_whole(blocks: u32) -> bool {
    blocks <= RANGES * RANGE
}

/// The size that is reported to the index builder of a table that has no index: `blocks`, its number of blocks; `u32::MAX` if
/// the builder has left an invalid index there; 0 if the builder builds no index on this table.
pub(crate) fn size_for_builder(job: &Job, blocks: u32) -> Result<u32, Error> {
    look(job.relid, |_| {
        let label = governing_label(job.relid);
        let is_auto = label.is_some_and(|label| label.policy.index == IndexMethod::Auto);
        let is_covered = job.relid == job.policy.labelled_table || catalog::is_partition(job.relid);
        // Further TTL indexes than those whose progress is kept (EXPIRY_KEYS) are read, too: the builder has none to build.
        let lacks_index = |key: &ExpiryKey| !key.is_ordered && key.kind() != ExpiryKind::OfRule;
        let is_lacking = job.expiry_keys.iter().any(lacks_index);
        let is_built = is_auto && is_covered && is_lacking;
        let Some(clock) = job.policy.clock.filter(|_| is_built) else {
            return Ok(0);
        };
        Ok(
            match missing_index::left_over(job.relid, clock).is_empty() {
                true => blocks,
                false => u32::MAX,
            },
        )
    })
}

/// How many blocks the table has.
pub(crate) fn blocks(job: &Job) -> Result<u32, Error> {
    look(job.relid, |_| {
        Ok(relation::OpenRelation::locked(job.relid).blocks())
    })
}

/// When the next row expires after those that were expired at `cutoffs`, as far as ordered
/// indexes tell.
pub(crate) fn next_expiry(job: &Job, cutoffs: &[i64]) -> Result<Option<i64>, Error> {
    let ordered = |key: &&ExpiryKey| key.is_ordered;
    if !job.expiry_keys.iter().any(|key| key.is_ordered) {
        return Ok(None);
    }
    look(job.relid, |visit| {
        let next = job.expiry_keys.iter().filter(ordered).filter_map(|key| {
            let query = job.next_key(key, cutoffs[key.number]);
            job.first_row::<1>(visit, &query)?[0]
        });
        Ok(next.map(|instant| instant.value() as i64).min())
    })
}

/// What was read of a range of blocks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FirstExpiry {
    /// When the first row expires, of those that no index leads to.
    pub(crate) expiry: Option<i64>,
    /// The least override, in seconds.
    pub(crate) least_override: Option<i32>,
}

/// Reads a range of blocks.
pub(crate) fn first_read(job: &Job, (from, to): (u32, u32)) -> Result<FirstExpiry, Error> {
    /// The number of blocks that are read in one transaction.
    const TOGETHER: usize = 4096;
    let mut found = FirstExpiry::default();
    for from in (from..to).step_by(TOGETHER) {
        let query = job.first_read((from, from.saturating_add(TOGETHER as u32).min(to)));
        let [expiry, least_override] =
            look(job.relid, |visit| Ok(job.first_row(visit, &query)))?.unwrap_or_default();
        let expiry = expiry.map(|instant| instant.value() as i64);
        let least_override = least_override.map(|seconds| seconds.value() as i32);
        found.expiry = found.expiry.into_iter().chain(expiry).min();
        found.least_override = found.least_override.into_iter().chain(least_override).min();
    }
    Ok(found)
}

/// When a row expired that a pass has left behind and that is not set aside: it is locked, or
/// was written since.
pub(crate) fn left_behind(
    job: &Job,
    cutoffs: &[i64],
    aside: &SetAside,
) -> Result<Option<i64>, Error> {
    if job.reads_all() {
        let blocks = blocks(job)?;
        if u64::from(blocks) >= settings::auto_index_min_blocks() {
            return Ok(None);
        }
        let first = first_read(job, (0, blocks))?.expiry;
        return Ok(first.filter(|&expiry| cutoffs.iter().any(|&cutoff| expiry <= cutoff)));
    }
    look(job.relid, |visit| {
        for expiry_key in &job.expiry_keys {
            let query = job.index_sweep(
                expiry_key,
                IndexPosition::BEGINNING,
                cutoffs[expiry_key.number],
                &aside.exclusion(),
                1,
            );
            let rows = receiver::collect(visit, job, &query, &[], 1);
            if let Some(row) = rows.first() {
                return Ok(Some(row.key.unwrap_or(0).saturating_add(expiry_key.offset)));
            }
        }
        Ok(None)
    })
}

/// Those of these rows that are still there, and expired.
pub(crate) fn still_expired(job: &Job, rows: &[(u32, u16)]) -> Result<HashSet<(u32, u16)>, Error> {
    let query = job.expired_at(rows);
    look(job.relid, |visit| {
        let found = receiver::collect(visit, job, &query, &[], rows.len());
        Ok(found.iter().map(FoundRow::tid).collect())
    })
}

pub(crate) fn first_row(job: &Job, query: &str) -> Result<Option<FoundRow>, Error> {
    look(job.relid, |visit| {
        let rows = receiver::collect(visit, job, query, &[], 1);
        Ok(rows.first().copied())
    })
}

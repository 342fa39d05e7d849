//! Looks at a table without deleting: what there is to do, and when.

use super::batch_size::{self, Way};
use super::blocked::SetAside;
use super::job::{Access, Job};
use crate::pg::receiver::{self, Found};
use crate::pg::txn::{self, Failure};
use crate::pg::{catalog, locks, relation, roles, session};
use crate::store::governing_label;
use crate::visibility::statement;
use pgrx::datum::TimestampWithTimeZone;
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, pg_sys};

/// How much there is to delete.
#[derive(Debug, Clone, Copy)]
pub(super) struct Estimate {
    pub(super) expired: u64,
    pub(super) blocks: u32,
}

impl Estimate {
    pub(super) fn way(&self) -> Way {
        batch_size::way(self.expired, u64::from(self.blocks))
    }
}

/// Runs `look` in a transaction of its own, as the table's owner, with a weak
/// lock on the table, if that needs no waiting.
fn look<T>(relid: pg_sys::Oid, look: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    txn::run(|| {
        if !locks::try_relation(relid, pg_sys::AccessShareLock) {
            return Err(Failure::new(
                PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE,
                format!(
                    "could not obtain lock on relation {}",
                    catalog::qualified_name(relid)
                ),
            ));
        }
        if let Some(class) = catalog::class(relid) {
            become_owner(class.owner)?;
        }
        session::without_detours(look)
    })
}

/// Becomes a table's owner for the rest of the transaction, if nobody else's code
/// can have left anything in this session. (A turn begins by cleaning it; only a
/// change of owner comes in between.)
pub(super) fn become_owner(owner: pg_sys::Oid) -> Result<(), Failure> {
    if !roles::is_clean_for(Some(owner)) {
        return Err(Failure::new(
            PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "the owner of the table has changed",
        ));
    }
    roles::become_role(owner);
    Ok(())
}

/// The table's owner.
pub(super) fn owner(relid: pg_sys::Oid) -> Result<Option<pg_sys::Oid>, Failure> {
    txn::run(|| Ok(catalog::class(relid).map(|class| class.owner)))
}

/// What is needed to sweep the table; `None` if nothing in it can expire, or its
/// policy is one that has come from elsewhere meanwhile.
pub(super) fn job(relid: pg_sys::Oid) -> Result<Option<Job>, Failure> {
    look(relid, || {
        let bound = governing_label(relid)
            .is_some_and(|label| !label.policy.is_restored(label.holder.to_u32()));
        Ok(if bound { Job::of(relid) } else { None })
    })
}

/// The only value. Not `Spi::get_one`, which takes a transaction ID.
fn one<T: FromDatum + IntoDatum>(query: &str) -> Result<Option<T>, pgrx::spi::Error> {
    Spi::connect(|client| client.select(query, Some(1), &[])?.first().get_one())
}

fn spi_failed(error: &pgrx::spi::Error) -> Failure {
    Failure::new(
        PgSqlErrorCode::ERRCODE_INTERNAL_ERROR,
        format!("query failed: {error}"),
    )
}

/// Estimates from a sample of some 200 blocks how many rows are expired.
pub(super) fn estimate(job: &Job) -> Result<Estimate, Failure> {
    const SAMPLE: f64 = 200.0;
    look(job.relid, || {
        let blocks = relation::Open::locked(job.relid).blocks();
        let percent = (100.0 * SAMPLE / f64::from(blocks.max(1))).min(100.0);
        let query = job.sample(percent);
        let counted = statement::with_expired_rows_of(job.relid, || one::<i64>(&query))
            .map_err(|error| spi_failed(&error))?;
        let expired = counted.unwrap_or(0) as f64 * 100.0 / percent;
        Ok(Estimate {
            expired: expired as u64,
            blocks,
        })
    })
}

/// When the next row expires, after those that were expired at `cutoffs`, as far
/// as ordered indexes tell.
pub(super) fn next_expiry(job: &Job, cutoffs: &[i64]) -> Result<Option<i64>, Failure> {
    let Some(query) = job.next_keys(cutoffs) else {
        return Ok(None);
    };
    look(job.relid, || {
        statement::with_expired_rows_of(job.relid, || one::<TimestampWithTimeZone>(&query))
            .map(|next| next.map(i64::from))
            .map_err(|error| spi_failed(&error))
    })
}

/// When a row expired that a pass has left behind and that is not set aside: it
/// is locked, or has been written since.
pub(super) fn left_behind(
    job: &Job,
    cutoffs: &[i64],
    aside: &SetAside,
) -> Result<Option<i64>, Failure> {
    look(job.relid, || {
        for lane in job
            .lanes
            .iter()
            .filter(|lane| lane.access == Access::Ordered)
        {
            let query = job.trickle(lane, i64::MIN, cutoffs[lane.number], &aside.exclusion(), 1);
            let rows = statement::with_expired_rows_of(job.relid, || receiver::collect(&query, 1));
            if let Some(row) = rows.first() {
                return Ok(Some(row.key.unwrap_or(0).saturating_add(lane.offset)));
            }
        }
        Ok(None)
    })
}

/// The first row that `query` selects.
pub(super) fn first_row(job: &Job, query: &str) -> Result<Option<Found>, Failure> {
    look(job.relid, || {
        let rows = statement::with_expired_rows_of(job.relid, || receiver::collect(query, 1));
        Ok(rows.first().copied())
    })
}

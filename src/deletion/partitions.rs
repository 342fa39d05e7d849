//! Dropping a partition whose every row is expired (M11).
//!
//! Each function works within the caller's transaction, in which `lock_timeout` is
//! set. The order: [`super::bounds`] says that the partition's time has passed;
//! [`lock_for_drop`]; then everything is looked up again, since it may have changed
//! while the locks were waited for (the policy, the bound, and with an override
//! column [`has_live_row`]); [`drop_whole`]; commit. Whatever raises an error rolls
//! all of it back.

use crate::error::{Error, Result};
use crate::pg::catalog::{self, qualified_name};
use crate::pg::gate::Visit;
use crate::pg::{cascade, encoding, query};
use crate::store::{TablePolicy, live_condition};
use crate::visibility::statement;
use pgrx::{PgSqlErrorCode, pg_sys};

/// Locks the partition's parent and then the partition, ACCESS EXCLUSIVE, until the
/// end of the transaction; returns the parent.
///
/// `None` if it is not, or no longer, a partition that is an ordinary table. Else no
/// other transaction reads or writes the partition or routes rows to it, and none
/// that wrote to it is open. Sessions that come by the parent wait meanwhile, as
/// they do for DETACH PARTITION.
pub(crate) fn lock_for_drop(leaf: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // Downwards, as everybody who comes through the parent locks.
    let parent = parent_of(leaf)?;
    for relid in [parent, leaf] {
        // SAFETY: what is locked is looked up again after the lock is granted.
        unsafe { pg_sys::LockRelationOid(relid, pg_sys::AccessExclusiveLock.cast_signed()) };
    }
    parent_of(leaf).filter(|&now| now == parent)
}

fn parent_of(leaf: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let class = catalog::class(leaf)?;
    if !class.is_partition || class.relkind != pg_sys::RELKIND_RELATION {
        return None;
    }
    catalog::parents(leaf, true).into_iter().next()
}

/// Who may drop the partition without anybody else's code being run as somebody it is not: the
/// owner of both, the partition and its parent, to which no table of anybody else refers.
pub(crate) fn sole_owner(leaf: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let parent = parent_of(leaf)?;
    let owner = owner_of(leaf)?;
    (owner_of(parent) == Some(owner) && !cascade::is_referred_to_by_strangers(leaf, owner))
        .then_some(owner)
}

/// Whether a row of the partition is live, by its override above all. Reads up to the
/// first such row.
///
/// Sees all that is committed at the time of the call, as `upper_bound` does. Under
/// the locks of [`lock_for_drop`] the answer therefore stays true until the
/// transaction's end, but for rows that expire meanwhile. `ttl.now()`, against which
/// rows expire, is the start of the current statement: an early one errs on the side
/// of life.
pub(crate) fn has_live_row(visit: &Visit, leaf: pg_sys::Oid, policy: &TablePolicy) -> bool {
    let query = format!(
        "SELECT EXISTS (SELECT FROM ONLY {} WHERE {})",
        qualified_name(leaf),
        live_condition(policy.default_ttl)
    );
    let found = statement::with_expired_rows_of(leaf, || query::first_value(visit, &query, &[]));
    // An answer that did not come is not "none".
    found.is_none_or(|exists| exists.value() as u8 != 0)
}

/// Detaches the partition and drops it, as the owner of both, who the transaction has become.
///
/// Takes the locks of [`lock_for_drop`] if the caller did not; looks at neither rows
/// nor bounds. An error of PostgreSQL, when a foreign key refers to a row, or a view
/// to the partition, is raised as it is. RESTRICT: nothing else goes with it than what
/// belongs to it. No DELETE trigger fires and logical replication does not tell
/// subscribers; event triggers do fire, as that owner. As after any DROP, older
/// snapshots (REPEATABLE READ) do not see the rows any more either.
pub(crate) fn drop_whole(_as_owner: &Visit, leaf: pg_sys::Oid) -> Result<()> {
    let gone = || {
        let message = format!("table {} is not a partition", qualified_name(leaf));
        Error::new(PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE, message)
    };
    let parent = lock_for_drop(leaf).ok_or_else(gone)?;
    let (table, partition) = (qualified_name(parent), qualified_name(leaf));
    encoding::run(&format!("ALTER TABLE {table} DETACH PARTITION {partition}"))?;
    // Tables are locked but schemas are not: the names might have come to mean others
    // in between. An error takes it all back.
    if parent_of(leaf).is_some() {
        return Err(renamed(leaf));
    }
    encoding::run(&format!("DROP TABLE {partition}"))?;
    if catalog::class(leaf).is_some() {
        return Err(renamed(leaf));
    }
    Ok(())
}

fn renamed(leaf: pg_sys::Oid) -> Error {
    let message = format!(
        "table {} was renamed while it was being dropped",
        qualified_name(leaf)
    );
    Error::new(PgSqlErrorCode::ERRCODE_OBJECT_IN_USE, message)
}

fn owner_of(relid: pg_sys::Oid) -> Option<pg_sys::Oid> {
    catalog::class(relid).map(|class| class.owner)
}

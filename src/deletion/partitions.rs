//! Dropping a partition whose every row is expired (M11).
//!
//! All functions work within the caller's transaction, in which `lock_timeout` is set. The
//! order: [`super::partition_bounds`] says that the partition's time has passed; [`lock_for_drop`]; then
//! the policy, the bound and, with an override column, [`has_live_row`] are looked up again, as
//! they may have changed during the wait; [`drop_whole`]; commit. An error rolls everything
//! back.

use super::job;
use crate::error::{Error, Result};
use crate::pg::abi::encoding;
use crate::pg::catalog::cascade;
use crate::pg::catalog::{self, qualified_name, roles};
use crate::pg::exec::query::{self, Sql};
use crate::pg::session::gate::GateVisit;
use crate::pg::session::locks;
use crate::store::TablePolicy;
use crate::visibility::planned_statement;
use pgrx::{PgSqlErrorCode, pg_sys};

/// Locks the partition's parent and then the partition, ACCESS EXCLUSIVE, until the
/// end of the transaction; returns the parent.
///
/// `None` if it is not, or no longer, a partition that is an ordinary table. Otherwise no other
/// transaction reads or writes the partition or routes rows to it, and none that wrote to it is
/// open. Sessions that come through the parent wait, as for DETACH PARTITION.
pub(crate) fn lock_for_drop(leaf: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // Downwards, the order in which all statements on the parent lock.
    let parent = parent_of(leaf)?;
    for relid in [parent, leaf] {
        locks::relation(relid, pg_sys::AccessExclusiveLock);
    }
    parent_of(leaf).filter(|&now| now == parent)
}

fn parent_of(leaf: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let class = catalog::class(leaf)?;
    if !class.is_partition || !class.has_rows() {
        return None;
    }
    catalog::parents(leaf).into_iter().next()
}

/// The owner of both the partition and its parent, if no other owner's table refers to the
/// parent: as this owner the partition can be dropped without running another user's code.
pub(crate) fn sole_owner(leaf: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let parent = parent_of(leaf)?;
    let owner = catalog::owner(leaf)?;
    (catalog::owner(parent) == Some(owner) && !cascade::is_referred_to_by_strangers(leaf, owner))
        .then_some(owner)
}

/// Whether a row of the partition is live or kept (C23), mostly by its override. Reads up to the first such
/// row.
///
/// Sees everything committed at the time of the call. Under the locks of [`lock_for_drop`] the
/// answer stays true until the transaction's end, except for rows that expire meanwhile.
/// `ttl.now()` is the start of the current statement; an early one errs on the side of live.
pub(crate) fn has_live_row(visit: &GateVisit, leaf: pg_sys::Oid, policy: &TablePolicy) -> bool {
    if policy.is_shell() {
        return has_live_row_in_shards(leaf, policy);
    }
    let query = format!(
        "SELECT true WHERE {} LIMIT 1",
        job::still_kept(policy, policy.keep_expired)
    );
    let query = Sql::over(leaf, &query);
    planned_statement::with_expired_rows_of(leaf, || query::first_value(visit, query, &[]))
        .is_some()
}

/// The size of a columnar shard without rows: a page with its metadata, and an empty one.
const EMPTY_COLUMNAR_SHARD: u32 = 2 * pg_sys::BLCKSZ;

/// Whether the partition holds a row, expired or not. Reads up to the first one.
///
/// Of the shards of Citus, which hide expired rows from here, it is enough that they take more space than
/// [`EMPTY_COLUMNAR_SHARD`].
pub(crate) fn has_row(visit: &GateVisit, leaf: pg_sys::Oid, policy: &TablePolicy) -> bool {
    if policy.is_shell() {
        let empty = if catalog::is_heap(leaf) {
            0
        } else {
            EMPTY_COLUMNAR_SHARD
        };
        let query = format!(
            "SELECT pg_catalog.citus_relation_size({0}::pg_catalog.oid::pg_catalog.regclass) OPERATOR(pg_catalog.>) \
                    ({empty}::pg_catalog.int8 OPERATOR(pg_catalog.*) (SELECT pg_catalog.count(*) \
               FROM pg_catalog.pg_dist_shard AS s JOIN pg_catalog.pg_dist_placement AS p \
                 ON p.shardid OPERATOR(pg_catalog.=) s.shardid \
              WHERE s.logicalrelid OPERATOR(pg_catalog.=) {0}::pg_catalog.oid))",
            leaf.to_u32()
        );
        return encoding::first_bool(&query).ok().flatten() == Some(true);
    }
    let query = Sql::over(leaf, "SELECT true LIMIT 1");
    planned_statement::with_expired_rows_of(leaf, || query::first_value(visit, query, &[]))
        .is_some()
}

/// As [`has_live_row`], of a partition whose rows are in shards of Citus: what their filters let
/// through is live. Where nothing is hidden, or rows are kept, it is unknown here.
fn has_live_row_in_shards(leaf: pg_sys::Oid, policy: &TablePolicy) -> bool {
    if !policy.label.hidden || policy.keep_expired > 0 {
        return true;
    }
    let query = format!("SELECT EXISTS (SELECT 1 FROM {})", qualified_name(leaf));
    encoding::first_bool(&query).ok().flatten().unwrap_or(true)
}

/// Locks the partition on all nodes of Citus, so that none of them writes to it until the end of the
/// transaction.
pub(crate) fn lock_everywhere(leaf: pg_sys::Oid) -> Result<()> {
    let statement = format!(
        "LOCK TABLE {} IN ACCESS EXCLUSIVE MODE",
        qualified_name(leaf)
    );
    encoding::run(&statement).map_err(Error::from)
}

/// Why neither the partition nor its parent may be named in a statement, if somebody else can rename a schema of theirs.
pub(crate) fn renamable(leaf: pg_sys::Oid) -> Option<String> {
    let tables = parent_of(leaf).into_iter().chain([leaf]);
    let mut classes = tables.filter_map(catalog::class);
    classes.find_map(|class| {
        let other = roles::renamer(class.namespace, class.owner)?;
        Some(format!(
            "schema {} can be renamed by {}, who could not act as {}",
            catalog::schema_name(class.namespace),
            roles::name(other),
            roles::name(class.owner)
        ))
    })
}

/// Detaches the partition and drops it, as the owner of both, who the current user is.
///
/// Takes the locks of [`lock_for_drop`] if the caller has not; checks neither rows nor bounds.
/// An error is raised as it is, as where a foreign key refers to a row, or a view to the
/// partition. RESTRICT: only what belongs to the partition goes with it. No DELETE trigger
/// fires, and logical replication does not tell subscribers; event triggers fire, as that owner.
/// Older snapshots (REPEATABLE READ) no longer see the rows, as after any DROP.
pub(crate) fn drop_whole(_as_owner: &GateVisit, leaf: pg_sys::Oid) -> Result<()> {
    let gone = || {
        let message = format!("table {} is not a partition", qualified_name(leaf));
        Error::wrong_kind(message)
    };
    let parent = lock_for_drop(leaf).ok_or_else(gone)?;
    let (table, partition) = (qualified_name(parent), qualified_name(leaf));
    encoding::run(&format!("ALTER TABLE {table} DETACH PARTITION {partition}"))?;
    // Schemas are not locked: meanwhile the names may have come to mean other tables. An error
    // undoes all.
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

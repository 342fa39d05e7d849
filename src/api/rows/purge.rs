//! `ttl.purge`.

use crate::api::policy::guard;
use crate::citus::{self, placements};
use crate::ddl::purge_before_change;
use crate::deletion::{batch, purge_tables as table};
use crate::error::{Error, Result};
use crate::pg::abi::report::or_raise;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// `ttl.purge(rel) RETURNS bigint`: deletes expired rows in the current transaction.
#[pg_extern(sql = false)]
fn purge(rel: Option<pg_sys::Oid>) -> i64 {
    guard::check_writable(c"ttl.purge()");
    or_raise(guard::required(rel, "rel").and_then(delete_expired))
}

/// `ttl_internal.purge_strictly(rel) RETURNS bigint`: as `ttl.purge`, but an error if an expired row stays.
#[pg_extern(sql = false)]
fn purge_strictly(rel: pg_sys::Oid) -> i64 {
    guard::check_writable(c"ttl_internal.purge_strictly()");
    let purged = guard::check_owner(rel).and_then(|()| {
        guard::lock(rel, pg_sys::RowExclusiveLock);
        purge_before_change::clear_shard(rel)
    });
    i64::try_from(or_raise(purged)).unwrap_or(i64::MAX)
}

fn delete_expired(relid: pg_sys::Oid) -> Result<i64> {
    guard::check_owner(relid)?;
    if citus::is_shell(relid) {
        return purge_shards(relid);
    }
    guard::lock(relid, pg_sys::RowExclusiveLock);
    let label = guard::governed(relid)?;
    if label.policy.handed_over {
        return Err(Error::handed_over(relid, label.labelled_table));
    }
    let mut deleted = 0;
    for child in table::lock_tree(relid, pg_sys::RowExclusiveLock) {
        let rows = table::delete_from(child)?;
        batch::notify(child, rows);
        deleted += rows;
    }
    Ok(i64::try_from(deleted).unwrap_or(i64::MAX))
}

/// On each copy of each shard, in transactions of their own.
fn purge_shards(relid: pg_sys::Oid) -> Result<i64> {
    guard::governed(relid)?;
    citus::call(relid, "ttl.purge", &[]).and_then(|answers| placements::sum(&answers))
}

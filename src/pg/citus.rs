//! What the catalogs of Citus, where it is installed, say of a relation. By name, without symbols of
//! Citus: without it this costs one look-up in the syscache.

use super::catalog;
use super::names;
use super::rows::{Catalog, Key};
use core::ffi::c_char;
use pgrx::pg_sys;

const PG_CATALOG: pg_sys::Oid = pg_sys::Oid::from_u32(pg_sys::PG_CATALOG_NAMESPACE);

/// What a relation is to Citus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// A distributed or reference table, or a local one in Citus's metadata: its rows are in shards,
    /// on this or other nodes.
    Table,
    /// A shard of this table.
    Shard(pg_sys::Oid),
}

/// The first columns of pg_dist_partition.
#[repr(C)]
struct FormPartition {
    logicalrelid: pg_sys::Oid,
    partmethod: c_char,
}

/// The first columns of pg_dist_shard.
#[repr(C)]
struct FormShard {
    logicalrelid: pg_sys::Oid,
    shardid: i64,
}

/// What the relation is to Citus; `None` if it is nothing to it, or there is no Citus.
pub(crate) fn part(relid: pg_sys::Oid) -> Option<Part> {
    let partitions = names::relation(PG_CATALOG, "pg_dist_partition")?;
    // SAFETY: Citus's catalog, which only a superuser can make, begins with these columns, which are
    // never NULL; without an index.
    let tables: Catalog<FormPartition> = unsafe { Catalog::new(partitions, None) };
    let mut found = false;
    tables.scan(&[(1, Key::Oid(relid))], &mut |_| {
        found = true;
        found
    });
    if found {
        return Some(Part::Table);
    }
    shard_of(relid).map(Part::Shard)
}

/// The table of which the relation is a shard: its name ends with a shard's number, and it is in the
/// table's schema.
fn shard_of(relid: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let number = number(&catalog::relation_name(relid))?;
    let shards = names::relation(PG_CATALOG, "pg_dist_shard")?;
    // SAFETY: as above.
    let shards: Catalog<FormShard> = unsafe { Catalog::new(shards, None) };
    let mut table = None;
    shards.scan(&[], &mut |row| {
        table = (row.shardid == number).then_some(row.logicalrelid);
        table.is_some()
    });
    let schema = |relid| catalog::class(relid).map(|class| class.namespace);
    table.filter(|&table| schema(table) == schema(relid))
}

/// The number with which a shard's name ends.
fn number(name: &str) -> Option<i64> {
    let (_, digits) = name.rsplit_once('_')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok())?
}

//! Citus's catalogs: whether it is in this database, its tables, its shards.

use super::shard_name;
use crate::pg::abi::encoding;
use crate::pg::abi::variable::Variable;
use crate::pg::catalog::rows::{self, Catalog, KeyDatum};
use crate::pg::catalog::{self, names};
use core::ffi::c_char;
use pgrx::pg_sys;
use std::cell::Cell;

const PG_CATALOG: pg_sys::Oid = pg_sys::Oid::from_u32(pg_sys::PG_CATALOG_NAMESPACE);

/// What a relation is to Citus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CitusRole {
    /// A shell: a distributed or reference table, or a local one in Citus's metadata. Its rows are
    /// in shards.
    Shell,
    /// A shard of this table.
    Shard(pg_sys::Oid),
}

/// Citus's catalogs and their indexes.
#[derive(Clone, Copy)]
struct Catalogs {
    partition: pg_sys::Oid,
    partition_table: pg_sys::Oid,
    shard: pg_sys::Oid,
    shard_id: pg_sys::Oid,
    shard_table: pg_sys::Oid,
}

#[derive(Clone, Copy)]
enum CitusState {
    Unknown,
    Absent,
    Present(Catalogs),
}

static STATE: Variable<Cell<CitusState>> = Variable::new(Cell::new(CitusState::Unknown));

/// Only superusers make tables in `pg_catalog`.
fn look_up() -> Option<Catalogs> {
    let relation = |name| names::relation(PG_CATALOG, name);
    Some(Catalogs {
        partition: relation("pg_dist_partition")?,
        partition_table: relation("pg_dist_partition_logical_relid_index")?,
        shard: relation("pg_dist_shard")?,
        shard_id: relation("pg_dist_shard_shardid_index")?,
        shard_table: relation("pg_dist_shard_logical_relid_index")?,
    })
}

/// `None` in a database without Citus: one comparison, until a function of the database changes.
#[inline]
fn catalogs() -> Option<Catalogs> {
    match STATE.get() {
        CitusState::Present(catalogs) => Some(catalogs),
        CitusState::Absent => None,
        CitusState::Unknown => {
            // Set first: a change that arrives during the look-up resets it.
            STATE.set(CitusState::Absent);
            let found = look_up();
            if let (Some(catalogs), CitusState::Absent) = (found, STATE.get()) {
                STATE.set(CitusState::Present(catalogs));
            }
            found
        }
    }
}

/// Whether Citus is in this database.
#[inline]
pub(crate) fn is_present() -> bool {
    catalogs().is_some()
}

/// Whether it is known not to be. Calls no function of PostgreSQL.
#[inline]
pub(crate) fn is_known_to_be_absent() -> bool {
    matches!(STATE.get(), CitusState::Absent)
}

/// Whether this is the node that coordinates the cluster: DDL of tables of Citus is for that alone.
pub(crate) fn is_coordinator() -> bool {
    is_present() && local_group() == Some(0)
}

/// The number of this node's group.
fn local_group() -> Option<i32> {
    let relation = names::relation(PG_CATALOG, "pg_dist_local_group")?;
    // SAFETY: Citus's catalog, of one row, begins with the number of the node's group, never NULL.
    let groups: Catalog<i32> = unsafe { Catalog::new(relation, None) };
    groups.find(&[], |row| Some(**row))
}

/// pg_dist_placement, whose columns are never NULL.
#[repr(C)]
struct FormPlacement {
    placementid: i64,
    shardid: i64,
    shardstate: i32,
    shardlength: i64,
    groupid: i32,
}

/// Whether Citus is about to make a copy of a shard of the relation, which is not yet one of those that
/// it reads.
pub(crate) fn is_unfinished_copy(relid: pg_sys::Oid) -> bool {
    if !is_present() {
        return false;
    }
    let Some(number) = shard_name::number(&catalog::relation_name(relid)) else {
        return false;
    };
    if shell_of(relid).is_none() {
        return true;
    }
    let relation = |name| names::relation(PG_CATALOG, name);
    let index = relation("pg_dist_placement_shardid_index");
    let Some((relation, index)) = relation("pg_dist_placement").zip(index) else {
        return false;
    };
    // SAFETY: Citus's catalog has these columns, and the index is on shardid.
    let placements: Catalog<FormPlacement> = unsafe { Catalog::new(relation, Some(index)) };
    let here = local_group();
    let key = (ANUM_SHARDID, KeyDatum::Int8(number));
    let found = placements.find(&[key], |row| (Some(row.groupid) == here).then_some(()));
    found.is_none()
}

/// Registers for changes of functions, with which Citus comes and goes; once, at load.
pub(super) fn init() {
    let cache = rows::cache_number(pg_sys::SysCacheIdentifier::PROCOID);
    let none = pg_sys::Datum::from(0);
    // SAFETY: the callback lives as long as the library and only sets a cell.
    unsafe { pg_sys::CacheRegisterSyscacheCallback(cache, Some(on_change), none) };
}

unsafe extern "C-unwind" fn on_change(_arg: pg_sys::Datum, _cache: i32, _hash: u32) {
    STATE.set(CitusState::Unknown);
}

/// The first columns of pg_dist_partition.
#[repr(C)]
struct FormPartition {
    logicalrelid: pg_sys::Oid,
    partmethod: c_char,
}

/// pg_dist_partition.repmodel: reference tables have 't'.
const ANUM_REPMODEL: u32 = 5;

/// The first columns of pg_dist_shard.
#[repr(C)]
struct FormShard {
    logicalrelid: pg_sys::Oid,
    shardid: i64,
}

const ANUM_LOGICALRELID: i16 = 1;
const ANUM_SHARDID: i16 = 2;

impl Catalogs {
    fn partitions(self) -> Catalog<FormPartition> {
        // SAFETY: the catalog begins with these columns, never NULL, and the index with the table's.
        unsafe { Catalog::new(self.partition, Some(self.partition_table)) }
    }

    fn shards(self, index: pg_sys::Oid) -> Catalog<FormShard> {
        // SAFETY: as above; the callers' keys are the index's.
        unsafe { Catalog::new(self.shard, Some(index)) }
    }
}

pub(crate) fn is_shell(relid: pg_sys::Oid) -> bool {
    is_shell_of_kind(relid, |_| true)
}

/// Whether the relation is the shell of a reference table, of which each node has a copy, or of one
/// whose shards Citus replicates by statements.
pub(crate) fn is_replicated(relid: pg_sys::Oid) -> bool {
    is_shell_of_kind(relid, |model| [b't', b'c'].contains(&model))
}

fn is_shell_of_kind(relid: pg_sys::Oid, is_kind: impl Fn(u8) -> bool) -> bool {
    let Some(catalogs) = catalogs() else {
        return false;
    };
    let key = (ANUM_LOGICALRELID, KeyDatum::Oid(relid));
    let found = catalogs.partitions().find(&[key], |row| {
        let model = row.value(ANUM_REPMODEL);
        Some(is_kind(model.map_or(0, |model| model.value() as u8)))
    });
    found == Some(true)
}

/// The shell of which the relation is a shard: by the number with which its name ends, and by all of its
/// name. It must be in the shell's schema and have its owner, so that no name makes a table of
/// somebody else's a shard.
pub(crate) fn shell_of(relid: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let catalogs = catalogs()?;
    let number = shard_name::number(&catalog::relation_name(relid))?;
    let key = (ANUM_SHARDID, KeyDatum::Int8(number));
    let shards = catalogs.shards(catalogs.shard_id);
    let shell = shards.find(&[key], |row| Some(row.logicalrelid));
    let is_its_name = |shell| {
        let name = shard_named(&catalog::relation_name(shell), number);
        name.is_some_and(|name| name == catalog::relation_name(relid))
    };
    shell.filter(|&shell| shell != relid && belongs(relid, shell) && is_its_name(shell))
}

/// The name of a shard of the table of this name.
fn shard_named(table: &str, number: i64) -> Option<String> {
    let table = encoding::to_server(table)?;
    let name = shard_name::of(table.to_bytes(), number, encoding::hash, encoding::clip);
    Some(encoding::from_bytes(name))
}

/// Whether Citus has made the relation to take the place of this one, of another kind: until it gets the
/// other's name, it is named as a shard whose number is the hash of that.
pub(crate) fn is_successor(relid: pg_sys::Oid, of: pg_sys::Oid) -> bool {
    if catalogs().is_none() || relid == of || !belongs(relid, of) {
        return false;
    }
    let name = catalog::relation_name(of);
    let hash = encoding::to_server(&name).map(|name| encoding::hash(name.to_bytes()));
    let successor = hash.and_then(|hash| shard_named(&name, i64::from(hash)));
    successor.is_some_and(|name| name == catalog::relation_name(relid))
}

/// Whether the relation may yet become a shard, without an invalidation of its own: its name is that of
/// one of a shell. Citus makes the parts of a shard that it splits before it says what they are.
pub(crate) fn may_become_shard(relid: pg_sys::Oid) -> bool {
    let Some(class) = catalogs().and_then(|_| catalog::class(relid)) else {
        return false;
    };
    let name = catalog::relation_name(relid);
    let table = shard_name::number(&name).and_then(|_| name.rsplit_once('_'));
    let table = table.and_then(|(table, _)| names::relation(class.namespace, table));
    table.is_some_and(is_shell) && !is_shell(relid) && shell_of(relid).is_none()
}

/// Whether the relation has the name of a shard, where Citus is: what that makes has, before its catalogs
/// say so, or where this session does not see that yet.
pub(crate) fn has_shard_name(relid: pg_sys::Oid) -> bool {
    catalogs().is_some() && shard_name::number(&catalog::relation_name(relid)).is_some()
}

fn belongs(shard: pg_sys::Oid, shell: pg_sys::Oid) -> bool {
    let of = |relid| catalog::class(relid).map(|class| (class.namespace, class.owner));
    of(shard).is_some_and(|of_shard| of(shell) == Some(of_shard))
}

/// The shards of the table that are on this node.
fn local_shards(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let Some((catalogs, class)) = catalogs().zip(catalog::class(relid)) else {
        return vec![];
    };
    let key = (ANUM_LOGICALRELID, KeyDatum::Oid(relid));
    let shards = catalogs.shards(catalogs.shard_table);
    let table = catalog::relation_name(relid);
    let names = shards.collect(&[key], |row| shard_named(&table, row.shardid));
    names
        .into_iter()
        .filter_map(|name| names::relation(class.namespace, &name))
        .filter(|&shard| belongs(shard, relid))
        .collect()
}

/// These relations, all that inherit from them, their shards on this node, and what inherits from
/// those; each once.
pub(crate) fn with_shards(relids: &[pg_sys::Oid]) -> Vec<pg_sys::Oid> {
    let tables = catalog::all_inheritors_of(relids.iter().copied());
    if catalogs().is_none() {
        return tables;
    }
    let shards: Vec<_> = tables.iter().copied().flat_map(local_shards).collect();
    catalog::all_inheritors_of(tables.into_iter().chain(shards))
}

/// What the relation is to Citus; `None` if it is nothing to it, or there is no Citus.
pub(crate) fn part(relid: pg_sys::Oid) -> Option<CitusRole> {
    catalogs()?;
    if is_shell(relid) {
        return Some(CitusRole::Shell);
    }
    shell_of(relid).map(CitusRole::Shard)
}

//! Puts the trigger `~ttl_free_expired_keys` on the tables that need it, and on no other.
//!
//! A table needs it while its TTL is on and it has a unique or exclusion constraint or index.
//! From a partitioned table PostgreSQL clones it to the partitions. What is there is compared
//! with what is needed, and only the difference is made
//! (`docs/decisions/0017-trigger-follows-constraints.md`).

use super::TRIGGER_NAME;
use crate::citus::{self, Doing};
use crate::error::Error;
use crate::pg::catalog::triggers::{self, Trigger};
use crate::pg::catalog::{self, index, roles};
use crate::pg::session::locks;
use crate::store::{cache, extension};
use pgrx::{PgSqlErrorCode, pg_sys};

const COMMENT: &str =
    "time to live (extension ttl_ext): removes the expired row that holds a new row's key";

/// What a table needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    Present,
    Absent,
    /// The script of a dump brings the trigger, after the constraints or, restored in parallel, before them
    /// (docs/decisions/0010-restore-guard.md).
    AsItIs,
}

/// What a table has.
enum Existing {
    None,
    Ours(Trigger),
    /// A trigger of that name that is not the extension's.
    Foreign,
}

/// Whether keys of expired rows can conflict with new rows: TTL is on, and there are keys.
pub(crate) fn is_needed(relid: pg_sys::Oid) -> bool {
    is_on(relid) && index::is_any_unique(relid)
}

/// Whether the table's TTL is on and hides expired rows: else their keys are taken until they
/// are deleted.
fn is_on(relid: pg_sys::Oid) -> bool {
    cache::policy(relid)
        .is_some_and(|policy| policy.label.hidden && policy.label.is_on() && !policy.is_shell())
}

/// Whether a dump's script is running that has brought the policy. What Citus makes for a shard comes from no dump.
fn is_being_restored(relid: pg_sys::Oid) -> bool {
    roles::reads_physically(relid)
        && !citus::is_doing(Doing::Making)
        && cache::policy(relid).is_some_and(|policy| policy.label.restored)
}

/// Whether the table is one that Citus is making: it will be a shell, which has no trigger, or gets it
/// when it is done (`ddl::conversion`).
fn is_made_by_citus(relid: pg_sys::Oid) -> bool {
    let makes = citus::is_doing(Doing::Converting) || citus::is_of_citus();
    makes && !citus::has_shard_name(relid)
}

pub(crate) fn placement(relid: pg_sys::Oid) -> Placement {
    if !is_on(relid) {
        Placement::Absent
    } else if is_being_restored(relid) || is_made_by_citus(relid) {
        Placement::AsItIs
    } else if index::is_any_unique(relid) {
        Placement::Present
    } else {
        Placement::Absent
    }
}

/// Whether a unique index makes the table need the trigger.
pub(crate) fn is_wanted_for_unique(relid: pg_sys::Oid) -> bool {
    is_on(relid) && !is_made_by_citus(relid) && !is_brought(relid) && can_carry(relid)
}

/// Whether a dump's script is running that will bring the trigger. The policy may have been
/// bound to the table while that was empty.
pub(crate) fn is_brought(relid: pg_sys::Oid) -> bool {
    roles::reads_physically(relid) && !has(relid)
}

/// Whether the table has the trigger.
pub(crate) fn has(relid: pg_sys::Oid) -> bool {
    matches!(find(relid), Existing::Ours(_))
}

/// Whether the table has the trigger, and it fires.
pub(crate) fn has_enabled(relid: pg_sys::Oid) -> bool {
    matches!(find(relid), Existing::Ours(trigger) if trigger.fires_always())
}

/// Whether the table has the trigger, and it fires but for changes that are replayed.
pub(crate) fn has_on_origin(relid: pg_sys::Oid) -> bool {
    matches!(find(relid), Existing::Ours(trigger) if trigger.fires_on_origin())
}

fn find(relid: pg_sys::Oid) -> Existing {
    let named = |trigger: &Trigger| trigger.name == TRIGGER_NAME.as_bytes();
    match triggers::of(relid).into_iter().find(named) {
        None => Existing::None,
        Some(trigger) if is_ours(&trigger) => Existing::Ours(trigger),
        Some(_) => Existing::Foreign,
    }
}

fn trigger_function() -> Option<pg_sys::Oid> {
    extension::functions().map(|functions| functions.free_expired_keys)
}

fn is_ours(trigger: &Trigger) -> bool {
    Some(trigger.function) == trigger_function() && trigger.is_before_every_write()
}

/// Whether it is a user's table, partitioned or not.
fn can_carry(relid: pg_sys::Oid) -> bool {
    relid.to_u32() >= pg_sys::FirstNormalObjectId && catalog::is_table(relid)
}

/// Creates and drops the trigger on the table, its partitions and children as needed; ancestors
/// first, since their triggers are cloned. Cheap where nothing is to be done.
///
/// The current user owns the table, or has passed PostgreSQL's checks for a statement that
/// changes it.
pub(crate) fn sync(relid: pg_sys::Oid) {
    for table in family(relid) {
        complete_one(table);
        remove_if_needless(table);
    }
}

/// As [`sync`], but keeps a trigger that is not needed: for statements that can only make it
/// necessary. A dump without labels has the trigger all the same, enables it and comments on it.
pub(crate) fn complete(relid: pg_sys::Oid) {
    family(relid).into_iter().for_each(complete_one);
}

/// The table and its descendants, as far as they can carry the trigger; nothing without the
/// extension, or under pg_upgrade.
fn family(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    // SAFETY: reads a variable that only this process writes.
    if unsafe { pg_sys::IsBinaryUpgrade } || !can_carry(relid) || trigger_function().is_none() {
        return vec![];
    }
    let mut tables = citus::with_shards(&[relid]);
    tables.retain(|&table| can_carry(table));
    tables
}

fn complete_one(relid: pg_sys::Oid) {
    match (placement(relid), find(relid)) {
        (Placement::Present, Existing::None) => create(relid),
        (Placement::Present, Existing::Foreign) => refuse_foreign(relid),
        // DISABLE TRIGGER ALL, or ENABLE TRIGGER ALL after it, has changed it.
        (_, Existing::Ours(trigger)) if is_on(relid) && !trigger.fires_always() => {
            triggers::enable_always(relid, TRIGGER_NAME);
        }
        _ => {}
    }
}

/// As the second half of [`sync`], for a table whose last key was just dropped, and which is
/// locked for that. Not for partitioned tables, whose partitions may need their clones.
pub(crate) fn remove_if_lone(relid: pg_sys::Oid) {
    if !catalog::is_partitioned(relid) {
        remove_if_needless(relid);
    }
}

fn remove_if_needless(relid: pg_sys::Oid) {
    if needless(relid).is_some() {
        remove(relid);
    }
}

/// The table's own trigger, if it is not needed. A clone goes with its original.
fn needless(relid: pg_sys::Oid) -> Option<Trigger> {
    match find(relid) {
        Existing::Ours(trigger) if !trigger.is_clone && placement(relid) == Placement::Absent => {
            Some(trigger)
        }
        _ => None,
    }
}

/// Creates the trigger if it is missing, for a unique index that is about to be created: before
/// that one rejects its first row.
pub(crate) fn create_if_missing(relid: pg_sys::Oid) {
    match find(relid) {
        Existing::None => create(relid),
        Existing::Foreign => refuse_foreign(relid),
        Existing::Ours(_) => {}
    }
}

/// Creates the trigger; a partition's own trigger would conflict with its clone.
fn create(relid: pg_sys::Oid) {
    let Some(function) = trigger_function() else {
        return;
    };
    if catalog::is_partitioned(relid) {
        remove_own_of_tree(relid);
    }
    triggers::create(relid, TRIGGER_NAME, function, COMMENT);
}

/// Drops the own triggers of the table and its partitions, so that PostgreSQL can clone the
/// partitioned table's.
pub(crate) fn remove_own_of_tree(relid: pg_sys::Oid) {
    for table in catalog::all_inheritors(relid) {
        match find(table) {
            Existing::Ours(trigger) if !trigger.is_clone => triggers::drop(trigger.oid),
            Existing::Foreign => refuse_foreign(table),
            _ => {}
        }
    }
}

/// Drops a trigger that is not needed, unless that means to wait for others who use the table or
/// a partition with a clone: it does no harm, and the next change of the table drops it.
fn remove(relid: pg_sys::Oid) {
    let lock = pg_sys::AccessExclusiveLock;
    let mut locked = vec![];
    // The table first, so that no partition comes or goes.
    let free = locks::try_relation(relid, lock) && {
        locked.push(relid);
        partitions(relid).into_iter().all(|partition| {
            let free = locks::try_relation(partition, lock);
            locked.extend(free.then_some(partition));
            free
        })
    };
    // Another session may have dropped it, or made it necessary.
    match needless(relid).filter(|_| free) {
        Some(trigger) => triggers::drop(trigger.oid),
        None => locked
            .into_iter()
            .for_each(|table| locks::release(table, lock)),
    }
}

/// A partitioned table's partitions of all levels.
fn partitions(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    if !catalog::is_partitioned(relid) {
        return vec![];
    }
    let mut tables = catalog::all_inheritors(relid);
    tables.retain(|&table| table != relid);
    tables
}

/// Whether turning TTL on will create the trigger, which takes a stronger lock than the rest.
pub(crate) fn will_be_created(relid: pg_sys::Oid) -> bool {
    let lacks =
        |table: &pg_sys::Oid| can_carry(*table) && index::is_any_unique(*table) && !has(*table);
    catalog::all_inheritors(relid).iter().any(lacks)
}

fn refuse_foreign(relid: pg_sys::Oid) -> ! {
    let table = catalog::qualified_name(relid);
    let name = catalog::quote_identifier(TRIGGER_NAME);
    Error::new(
        PgSqlErrorCode::ERRCODE_DUPLICATE_OBJECT,
        format!("table {table} has a trigger {name} that is not the extension's"),
    )
    .detail("The trigger that frees the keys of expired rows needs this name, to fire last.")
    .hint(format!(
        "Rename yours: ALTER TRIGGER {name} ON {table} RENAME TO own_free_expired_keys;"
    ))
    .raise()
}

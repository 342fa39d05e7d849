//! The tables that change when rows of another are deleted, by foreign keys.

use super::triggers::{self, Trigger};
use super::{catalog, roles};
use pgrx::pg_sys;
use std::collections::HashSet;

/// The triggers by which PostgreSQL deletes or changes the rows that refer to a deleted row, or
/// to one whose key changes.
const ACTIONS: [u32; 6] = [
    pg_sys::F_RI_FKEY_CASCADE_DEL,
    pg_sys::F_RI_FKEY_SETNULL_DEL,
    pg_sys::F_RI_FKEY_SETDEFAULT_DEL,
    pg_sys::F_RI_FKEY_CASCADE_UPD,
    pg_sys::F_RI_FKEY_SETNULL_UPD,
    pg_sys::F_RI_FKEY_SETDEFAULT_UPD,
];

/// The triggers that PostgreSQL fires when a row is deleted that others may refer to.
const AT_DELETION: [u32; 5] = [
    pg_sys::F_RI_FKEY_NOACTION_DEL,
    pg_sys::F_RI_FKEY_RESTRICT_DEL,
    pg_sys::F_RI_FKEY_CASCADE_DEL,
    pg_sys::F_RI_FKEY_SETNULL_DEL,
    pg_sys::F_RI_FKEY_SETDEFAULT_DEL,
];

/// A table that a deletion reaches by foreign keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reached {
    pub(crate) table: pg_sys::Oid,
    pub(crate) owner: pg_sys::Oid,
    /// It has triggers that fire after the statement that started the cascade, or rules, which
    /// may add such triggers.
    fires_later: bool,
}

/// The tables that a deletion from this one reaches, with their partitions and children, by the
/// catalogs now; the tables are not locked.
pub(crate) fn reached_from(relid: pg_sys::Oid) -> Vec<Reached> {
    let mut seen: HashSet<pg_sys::Oid> = HashSet::from([relid]);
    let mut found = Vec::new();
    let mut open = referring(relid);
    while let Some(table) = open.pop() {
        pgrx::check_for_interrupts!();
        if !seen.insert(table) {
            continue;
        }
        if let Some(class) = catalog::class(table) {
            let triggers = triggers::of(table);
            found.push(Reached {
                table,
                owner: class.owner,
                fires_later: class.has_rules || triggers.iter().any(Trigger::fires_after_change),
            });
            open.extend(acting(&triggers));
            open.extend(catalog::all_inheritors(table));
        }
    }
    found
}

fn referring(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    acting(&triggers::of(relid)).collect()
}

/// The tables that refer by a foreign key with an action.
fn acting(triggers: &[Trigger]) -> impl Iterator<Item = pg_sys::Oid> {
    let acts = |trigger: &&Trigger| ACTIONS.contains(&trigger.function.to_u32());
    triggers
        .iter()
        .filter(acts)
        .map(|trigger| trigger.other_table)
}

/// What other owners' tables do when somebody deletes rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strangers {
    /// There are no such tables.
    None,
    /// Their code runs as themselves, as long as it leaves nothing for later.
    Restrict,
    /// Code of this table's owner would run as the user who deletes.
    Refuse(pg_sys::Oid),
}

/// Whose code runs when `user` deletes from a table that reaches these. Superusers gain nothing
/// by it.
pub(crate) fn strangers(reached: &[Reached], user: pg_sys::Oid) -> Strangers {
    let mut strangers = reached
        .iter()
        .filter(|reached| reached.owner != user && !roles::is_superuser(reached.owner))
        .peekable();
    if strangers.peek().is_none() {
        return Strangers::None;
    }
    strangers
        .find(|stranger| RUN_AS_WHOEVER_DELETES && stranger.fires_later)
        .map_or(Strangers::Restrict, |stranger| {
            Strangers::Refuse(stranger.table)
        })
}

/// Whether another owner's table refers to this one: to detach a partition, PostgreSQL plans
/// queries over it as the current user.
pub(crate) fn is_referred_to_by_strangers(relid: pg_sys::Oid, user: pg_sys::Oid) -> bool {
    triggers::of(relid)
        .iter()
        .filter(|trigger| AT_DELETION.contains(&trigger.function.to_u32()))
        .filter_map(|trigger| catalog::class(trigger.other_table))
        .any(|other| other.owner != user && !roles::is_superuser(other.owner))
}

/// Up to 17, AFTER triggers of a table that a cascade reaches, and deferred ones, run as the
/// user who deletes; from 18 on, as the user who queued them.
const RUN_AS_WHOEVER_DELETES: bool = cfg!(not(since18));

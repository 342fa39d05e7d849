//! The tables that foreign keys reach when rows of another are deleted.

use super::triggers::{self, Trigger};
use super::{code, roles};
use crate::pg::catalog;
use pgrx::pg_sys;
use std::collections::HashSet;

/// The tables that a deletion from this one can reach by foreign keys of any action, with their
/// partitions and children, as the catalogs are now; the tables are not locked. The iterator looks each up when it is asked for it,
/// since there can be any number: whoever may refer to a table can have others refer to that.
pub(crate) fn reached_from(relid: pg_sys::Oid) -> impl Iterator<Item = pg_sys::Oid> {
    let mut seen: HashSet<pg_sys::Oid> = HashSet::from([relid]);
    let mut open = referring(relid);
    std::iter::from_fn(move || {
        loop {
            pgrx::check_for_interrupts!();
            let table = open.pop()?;
            if seen.insert(table) {
                open.extend(referring(table));
                open.extend(catalog::all_inheritors(table));
                return Some(table);
            }
        }
    })
}

/// More than these are not looked at where each deletion asks.
pub(crate) const MANY: usize = 10_000;

/// The tables that refer to this one.
fn referring(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let mut all = triggers::of(relid);
    all.retain(Trigger::is_referenced_at_deletion);
    all.iter().map(|trigger| trigger.other_table).collect()
}

/// Whether a deletion from this table can reach tables of others than this owner and superusers.
pub(crate) fn reaches_strangers(relid: pg_sys::Oid, owner: pg_sys::Oid) -> bool {
    let places = reached_from(relid).flat_map(|table| {
        let above = catalog::partitioned_ancestors(table).into_iter();
        above.chain([table])
    });
    places
        .filter_map(catalog::class)
        .any(|other| other.owner != owner && !roles::is_superuser(other.owner))
}

/// Whether another owner's table, or a partition of one, refers to this one: to detach a partition, PostgreSQL plans
/// queries over it as the current user.
pub(crate) fn is_referred_to_by_strangers(relid: pg_sys::Oid, user: pg_sys::Oid) -> bool {
    let tables = referring(relid).into_iter().flat_map(code::places);
    tables
        .filter_map(catalog::class)
        .any(|other| other.owner != user && !roles::is_superuser(other.owner))
}

/// Whether the table above may set off code as the owner of the one below: their owners are the same, or that of the upper one
/// could become the other. Triggers of a partition can be made on each partitioned table above it, too.
pub(crate) fn may_act_below(above: pg_sys::Oid, below: pg_sys::Oid) -> bool {
    others_above(above, below).is_empty()
}

/// The tables above it whose owners could not become that of the one below: this one, and those of which it is a partition.
pub(crate) fn others_above(above: pg_sys::Oid, below: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let of_below = catalog::owner(below);
    let may_act = |&table: &pg_sys::Oid| {
        let owners = catalog::owner(table).zip(of_below);
        owners.is_some_and(|(above, below)| above == below || roles::has_rights_of(above, below))
    };
    let mut tables = catalog::partitioned_ancestors(below);
    if !tables.contains(&above) {
        tables.insert(0, above);
    }
    tables.retain(|table| !may_act(table));
    tables
}

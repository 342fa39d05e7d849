//! Policies that come into force because another one has ended: a table below has its own, or inherits from a second table that
//! has one. Rows that are expired by it are deleted after `ttl.change_delay`, as after a change of the policy (C24).

use super::cache::{labelled_table, own_label};
use super::{label_of, policy_lock, seclabel};
use crate::citus;
use crate::error::Error;
use crate::pg::catalog;
use crate::pg::catalog::inheritance::{Topmost, topmost};
use crate::pg::server::background;
use crate::pg::session::locks;
use crate::policy::{Policy, Shortened};
use crate::settings;
use pgrx::pg_sys;

/// Makes background deletion in the family wait for `ttl.change_delay`.
pub(crate) fn delay(family: pg_sys::Oid) {
    policy_lock::lock_policy_for_change(family);
    if let Some(mut policy) = label_of(family) {
        let (former, now) = (policy.local.shortened, background::now());
        let shortened = Shortened::again(former, now, settings::change_delay());
        policy.local.shortened = Some(shortened);
        seclabel::set(family, Some(&policy));
    }
}

/// Of the table and those below it, the ones whose own policy is in force.
pub(crate) fn in_force(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let tables = catalog::all_below(relid).into_iter();
    let has_own = |table: &pg_sys::Oid| labelled_table(*table) == Some(*table);
    tables.filter(has_own).collect()
}

/// The table above whose policy is in force for this one.
pub(crate) fn policy_above(relid: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let above = labelled_table(relid).filter(|&above| above != relid)?;
    own_label(above)
        .is_some_and(|label| label.is_on())
        .then_some(above)
}

/// After a statement about the parents of a table for which the policy of `above` was in force: says if none is any more.
pub(crate) fn after_leaving(relid: pg_sys::Oid, above: pg_sys::Oid) {
    if labelled_table(relid).is_some() || citus::is_of_citus() {
        return;
    }
    Error::for_notice(format!(
        "rows of table {} no longer expire",
        catalog::qualified_name(relid)
    ))
    .detail(format!(
        "The table has left {}, whose time to live applied to it. Expired rows that have not been deleted are visible.",
        catalog::qualified_name(above)
    ))
    .hint("To give it a time to live of its own, use ttl.enable() or ttl.expire_after().")
    .notice();
}

/// As [`seclabel::set`]; if the policy ends, others come into force.
pub(crate) fn set(relid: pg_sys::Oid, policy: Option<&Policy>) {
    if policy.is_none_or(Policy::is_empty) {
        before_end(relid);
    }
    seclabel::set(relid, policy);
}

/// Before the label of the table is removed.
pub(super) fn before_end(relid: pg_sys::Oid) {
    let is_governed = |table: &pg_sys::Oid| labelled_table(*table) == Some(relid);
    let below = catalog::all_below(relid).into_iter();
    let mut found = Topmost::default();
    let has_another = |table: pg_sys::Oid| {
        table != relid && catalog::class(table).is_some() && own_label(table).is_some()
    };
    let next = |table| topmost(table, |_| None, &mut found, has_another);
    let next = distinct(below.filter(is_governed).filter_map(next));
    next.into_iter().for_each(comes_into_force);
}

/// Of a policy that comes into force: makes deletion wait, and says so.
pub(crate) fn comes_into_force(family: pg_sys::Oid) {
    // A node of Citus gets the label with the statement.
    if citus::is_of_citus() {
        return;
    }
    // Its label is changed: it is not dropped meanwhile, nor has just been.
    locks::relation(family, pg_sys::AccessShareLock);
    // What is restored waits for `ttl.resume` anyway.
    let Some(label) = label_of(family).filter(|label| label.is_on() && !label.restored) else {
        return;
    };
    delay(family);
    Error::for_warning(format!(
        "the time to live of table {} is in force from now on",
        catalog::qualified_name(family)
    ))
    .detail(format!(
        "Until now, another applied to its rows. Those that are expired by it {}.",
        fate(label.hidden)
    ))
    .warn();
}

/// Whether the label of the table is in force for one below it, or would be if the table had one.
pub(crate) fn would_govern(relid: pg_sys::Oid, below: pg_sys::Oid, found: &mut Topmost) -> bool {
    let has_label = |table: pg_sys::Oid| {
        table == relid || catalog::class(table).is_some() && own_label(table).is_some()
    };
    topmost(below, |_| None, found, has_label) == Some(relid)
}

/// The tables whose labels would no longer be in force for the table and those below it, if the table had one.
pub(crate) fn replaced_by(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let mut found = Topmost::default();
    let tables = catalog::all_inheritors(relid).into_iter();
    let replaced = tables.filter_map(|table| {
        let present = labelled_table(table).filter(|&family| family != relid)?;
        would_govern(relid, table, &mut found).then_some(present)
    });
    distinct(replaced)
}

/// What becomes of rows that come to be expired by a policy, which hides them or not; after "they".
pub(crate) fn fate(hidden: bool) -> String {
    match (hidden, settings::change_delay() / 1_000_000) {
        (true, 0) => "are hidden now, and will be deleted".to_owned(),
        (true, delay) => format!("are hidden now and deleted after {delay} seconds"),
        (false, 0) => "will be deleted".to_owned(),
        (false, delay) => format!("are deleted after {delay} seconds"),
    }
}

fn distinct(tables: impl Iterator<Item = pg_sys::Oid>) -> Vec<pg_sys::Oid> {
    let mut tables: Vec<_> = tables.collect();
    tables.sort_unstable_by_key(|table| table.to_u32());
    tables.dedup();
    tables
}

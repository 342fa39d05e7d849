//! What a statement drops: indexes, also by CASCADE, and the extension itself.
//!
//! `pg::object_access` reports each object before it is dropped. So labels and tables need not be
//! searched for what is missing (docs/decisions/0024-what-a-statement-has-dropped.md).

use super::noted::NOTED;
use super::{rules_in_force, sync_label};
use crate::pg::catalog::{self, index, roles};
use crate::store::{cache, extension, policy_lock, seclabel};
use pgrx::pg_sys;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Notes an index that is about to be dropped, and the tables above a table; ignores other relations.
pub(super) fn note(relid: pg_sys::Oid) {
    let toast = pg_sys::Oid::from(pg_sys::PG_TOAST_NAMESPACE);
    let Some(class) = catalog::class(relid).filter(|class| class.namespace != toast) else {
        return;
    };
    match class.relkind {
        pg_sys::RELKIND_INDEX | pg_sys::RELKIND_PARTITIONED_INDEX => {
            let Some(table) = index::table_of(relid) else {
                return;
            };
            let name = catalog::relation_name(relid);
            NOTED.change(|noted| {
                let of_table = noted.indexes.entry(table.to_u32()).or_default();
                of_table.push(name);
            });
        }
        pg_sys::RELKIND_RELATION
        | pg_sys::RELKIND_PARTITIONED_TABLE
        | pg_sys::RELKIND_FOREIGN_TABLE => {
            let (above, rules) = (
                catalog::ancestors(relid),
                rules_in_force::before_drop(relid),
            );
            NOTED.change(|noted| {
                noted.above.extend(above);
                noted.rules.extend(rules);
            });
        }
        _ => {}
    }
}

/// Ends the rules of dropped TTL indexes (M8). Returns the tables that lost an index and still
/// exist.
pub(super) fn end_rules(indexes: BTreeMap<u32, Vec<String>>) -> Vec<pg_sys::Oid> {
    let mut left = Vec::new();
    let tables = indexes.into_iter();
    let mut tables: Vec<_> = tables
        .map(|(table, names)| (pg_sys::Oid::from(table), names))
        .collect();
    // What is below first: the policy of a table below does not come into force if it ends, too.
    tables.sort_by_cached_key(|&(table, _)| Reverse(catalog::ancestors(table).len()));
    for (table, names) in tables {
        pgrx::check_for_interrupts!();
        let Some(class) = catalog::class(table) else {
            continue;
        };
        sync_label::end_rules(table, &names);
        left.push(table);
        // M14: a TTL index on an expression is in force if all tables that inherit have it.
        let above = cache::labelled_table(table).filter(|above| *above != table);
        if let Some(above) = above.filter(|_| !class.is_partition) {
            seclabel::invalidate(above);
        }
    }
    left
}

/// What is known of these tables, above ones that were dropped, may depend on those: PostgreSQL invalidates the parents of partitions only.
pub(super) fn forget_above(mut tables: Vec<pg_sys::Oid>) {
    tables.sort_unstable_by_key(|table| table.to_u32());
    tables.dedup();
    for table in tables {
        if catalog::class(table).is_some() {
            catalog::invalidate(table);
        }
    }
}

/// Called before an extension is dropped. If it is this one, waits for running batches and lets no
/// other begin.
pub(super) fn stop_deletion(dropped: pg_sys::Oid) {
    if extension::oid() == Some(dropped) {
        policy_lock::lock_extension_for_drop(dropped);
    }
}

/// As [`stop_deletion`], but before DROP EXTENSION has locked anything: a running batch may wait
/// for what is dropped with the extension.
pub(super) fn before_drop_extension() {
    if let Some(extension) = extension::oid()
        && roles::owns(
            pg_sys::ExtensionRelationId,
            extension,
            roles::current_user(),
        )
    {
        policy_lock::lock_extension_for_drop(extension);
    }
}

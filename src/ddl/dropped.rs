//! What a statement drops: its indexes, by cascade too, and the extension itself.
//!
//! `pg::object_access` tells of each, before it goes. So nobody has to look for what may be
//! gone, in the labels and on the tables of others
//! (docs/decisions/0024-what-a-statement-has-dropped.md).

use super::sync_label;
use crate::pg::object_access::Calls;
use crate::pg::{catalog, index, roles};
use crate::store::{extension, policy_lock};
use pgrx::pg_sys;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// What is asked to be told.
pub(super) const CALLS: Calls = Calls {
    relation: note,
    extension: stop_deletion,
};

thread_local! {
    /// Tables, by OID, and the names of their indexes that the running statement has dropped.
    static INDEXES: RefCell<BTreeMap<u32, Vec<String>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Notes an index that is about to be dropped; other relations do not matter.
fn note(relid: pg_sys::Oid) {
    let indexes = [pg_sys::RELKIND_INDEX, pg_sys::RELKIND_PARTITIONED_INDEX];
    let toast = pg_sys::Oid::from(pg_sys::PG_TOAST_NAMESPACE);
    let is_noted =
        |class: &catalog::Class| indexes.contains(&class.relkind) && class.namespace != toast;
    if catalog::class(relid).filter(is_noted).is_some()
        && let Some(table) = index::table_of(relid)
    {
        let name = catalog::relation_name(relid);
        INDEXES.with_borrow_mut(|all| all.entry(table.to_u32()).or_default().push(name));
    }
}

/// Ends the rules of TTL indexes that were dropped (M8); returns the tables that are left of
/// those that have lost an index.
pub(super) fn end_rules() -> Vec<pg_sys::Oid> {
    let mut left = Vec::new();
    for (table, names) in INDEXES.take() {
        pgrx::check_for_interrupts!();
        let table = pg_sys::Oid::from(table);
        if catalog::class(table).is_some() {
            sync_label::end_rules(table, &names);
            left.push(table);
        }
    }
    left
}

/// The statement has failed, or is another one. Raises no error.
pub(super) fn forget() {
    INDEXES.with_borrow_mut(BTreeMap::clear);
}

/// An extension is about to be dropped. If it is this one, no row is deleted from now on:
/// waits for batches that are under way, and keeps others from beginning.
fn stop_deletion(dropped: pg_sys::Oid) {
    if extension::oid() == Some(dropped) {
        policy_lock::lock_extension_for_drop(dropped);
    }
}

/// As [`stop_deletion`] for DROP EXTENSION, before it has locked anything: a batch may
/// wait for what is dropped with the extension.
pub(super) fn before_drop_extension() {
    if let Some(extension) = extension::oid()
        && roles::owns_extension(extension, roles::current_user())
    {
        policy_lock::lock_extension_for_drop(extension);
    }
}

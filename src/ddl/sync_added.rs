//! Keeps the list of what `ttl.enable` added up to date: a dropped column is forgotten, so that a
//! later column of that name is the user's; a renamed index stays on the list.

use crate::pg::catalog::{self, roles};
use crate::pg::session::locks;
use crate::store::{label_of, policy_lock, seclabel};
use pgrx::pg_sys;

/// Called before columns of the table are dropped. With TTL on, such a statement is refused.
pub(super) fn forget_columns(relid: pg_sys::Oid, dropped: &[&str]) {
    for table in catalog::all_inheritors(relid) {
        let concerned = || {
            let mut policy = label_of(table)?;
            let mut forgotten = false;
            for &name in dropped {
                forgotten |= policy.added.forget_column(name);
                // DROP COLUMN … CASCADE of the document column also drops the generated column.
                if policy.document_column.as_deref() == Some(name) {
                    let generated = policy.ttl_column.clone().unwrap_or_default();
                    forgotten |= policy.added.forget_column(&generated);
                }
            }
            forgotten.then_some(policy)
        };
        // Other users get PostgreSQL's error.
        if concerned().is_none() || !roles::owns_relation(table, roles::current_user()) {
            continue;
        }
        // Take the lock of ALTER TABLE first, to keep the lock order.
        locks::relation(table, pg_sys::AccessExclusiveLock);
        if let Some(policy) = concerned() {
            seclabel::set(table, Some(&policy));
        }
    }
}

/// Whether `ttl.enable` built the index for the table. If so, locks the policy: DROP INDEX takes
/// that lock before the lock on the index.
pub(super) fn is_index(table: pg_sys::Oid, name: &str) -> bool {
    let built = label_of(table).is_some_and(|p| p.added.indexes.iter().any(|i| i == name));
    if built && roles::owns_relation(table, roles::current_user()) {
        policy_lock::lock_policy_for_change(table);
    }
    built
}

/// Stores an index's new name in the label of its table.
pub(super) fn rename_index(table: pg_sys::Oid, old: &str, new: &str) {
    if let Some(mut policy) = label_of(table)
        && policy.added.rename_index(old, new)
    {
        seclabel::set(table, Some(&policy));
    }
}

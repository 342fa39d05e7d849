//! What `ttl.enable` added, followed through statements: a column that is dropped by hand is
//! forgotten, so that one of its name that comes later is the user's; an index may be renamed.

use crate::pg::{catalog, locks, roles};
use crate::store::{label_of, policy_lock, seclabel};
use pgrx::pg_sys;

/// Before columns of the table are dropped, which TTL that is on would not let happen.
pub(super) fn forget_columns(relid: pg_sys::Oid, dropped: &[&str]) {
    for table in catalog::all_inheritors(relid) {
        let concerned = || {
            let mut policy = label_of(table)?;
            let mut forgotten = false;
            for &name in dropped {
                forgotten |= policy.added.forget_column(name);
                // The generated column goes with its document, by CASCADE.
                if policy.document_column.as_deref() == Some(name) {
                    let generated = policy.ttl_column.clone().unwrap_or_default();
                    forgotten |= policy.added.forget_column(&generated);
                }
            }
            forgotten.then_some(policy)
        };
        // Others get PostgreSQL's error.
        if concerned().is_none() || !roles::owns_relation(table, roles::current_user()) {
            continue;
        }
        // The statement's own lock, before anything else is locked.
        locks::relation(table, pg_sys::AccessExclusiveLock);
        if let Some(policy) = concerned() {
            seclabel::set(table, Some(&policy.to_label()));
        }
    }
}

/// Whether the index is one that `ttl.enable` built for the table; locks the policy then,
/// which whoever drops the index does before.
pub(super) fn is_index(table: pg_sys::Oid, name: &str) -> bool {
    let built = label_of(table).is_some_and(|p| p.added.indexes.iter().any(|i| i == name));
    if built && roles::owns_relation(table, roles::current_user()) {
        policy_lock::lock_policy_for_change(table);
    }
    built
}

/// Puts an index's new name into the label of its table.
pub(super) fn rename_index(table: pg_sys::Oid, old: &str, new: &str) {
    if let Some(mut policy) = label_of(table)
        && policy.added.rename_index(old, new)
    {
        seclabel::set(table, Some(&policy.to_label()));
    }
}

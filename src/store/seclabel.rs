//! Security labels of the provider `ttl`.

use super::{policy_lock, written};
use crate::pg::syntax::Node;
use crate::pg::{catalog, encoding, labels};
use pgrx::pg_sys;
use std::ffi::CStr;

/// The label provider's name.
pub(crate) const PROVIDER: &CStr = c"ttl";

/// Whether the statement is about a label of this provider.
pub(crate) fn is_ours(statement: Node<'_, pg_sys::SecLabelStmt>) -> bool {
    let provider = statement.text(|statement| &statement.provider);
    provider.is_none_or(|provider| provider == PROVIDER)
}

/// Before a label changes: waits for batches under the present policy, and tells all sessions
/// and workers at commit.
pub(crate) fn about_to_change(relid: pg_sys::Oid) {
    policy_lock::lock_policy_for_change(relid);
    written::note_policy_change();
    invalidate(relid);
}

/// Stores the label (`None` removes it), tells all sessions, and makes the change visible to the
/// rest of the transaction. The caller holds a lock on the table and has checked privileges.
pub(crate) fn set(relid: pg_sys::Oid, label: Option<&str>) {
    about_to_change(relid);
    let label = label.and_then(encoding::to_server);
    labels::set(PROVIDER, relid, label.as_deref());
}

/// Makes every session forget the table, its descendants and its ancestors, and plan again (C8).
/// Takes effect at commit, in this session at the next command.
pub(crate) fn invalidate(relid: pg_sys::Oid) {
    let below = catalog::all_inheritors(relid).into_iter();
    for related in below.chain(catalog::ancestors(relid)) {
        if catalog::class(related).is_some() {
            catalog::invalidate(related);
        }
    }
}

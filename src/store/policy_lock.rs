//! The extension's own heavyweight locks: on a table's policy, and on the extension.

use super::extension;
use crate::pg::locks::{acquire, object_tag, try_acquire};
use pgrx::pg_sys;

/// `objsubid` of these locks. PostgreSQL locks objects with 0 there, whoever asks:
/// `ALTER FUNCTION mine() DEPENDS ON EXTENSION ttl_ext` locks the extension, and needs no
/// right to it. Nobody else takes these.
const OWN_LOCK: u16 = 0x7474;

/// The lock on a table's policy, apart from those on the table: who changes the
/// policy waits for a batch of deletions that goes by the old one, and the next
/// batch sees the new one. A lock on the table would not do: those that conflict
/// with a change of label also conflict with VACUUM.
fn policy_tag(holder: pg_sys::Oid) -> pg_sys::LOCKTAG {
    object_tag(pg_sys::RelationRelationId, holder, OWN_LOCK)
}

/// The lock on the extension: who drops it waits for all batches, and keeps others from
/// beginning.
fn extension_tag(extension: pg_sys::Oid) -> pg_sys::LOCKTAG {
    object_tag(pg_sys::ExtensionRelationId, extension, OWN_LOCK)
}

/// Keeps the policy from being changed during this transaction, if nobody is
/// changing it just now.
pub(crate) fn try_share_policy(holder: pg_sys::Oid) -> bool {
    try_acquire(&policy_tag(holder), pg_sys::ShareLock)
}

/// Waits for deletions under the present policy, and keeps others away until
/// the end of the transaction.
pub(crate) fn lock_policy_for_change(holder: pg_sys::Oid) {
    acquire(&policy_tag(holder), pg_sys::ExclusiveLock);
}

/// Keeps the extension from being dropped during this transaction, if nobody is
/// dropping it just now; false also if it is not there.
pub(crate) fn try_share_extension() -> bool {
    extension::oid().is_some_and(|extension| {
        try_acquire(&extension_tag(extension), pg_sys::AccessShareLock)
            // Whoever has dropped it has the lock no more.
            && extension::oid() == Some(extension)
    })
}

/// Waits for batches of deletions, and keeps others away until the end of the transaction.
pub(crate) fn lock_extension_for_drop(extension: pg_sys::Oid) {
    acquire(&extension_tag(extension), pg_sys::AccessExclusiveLock);
}

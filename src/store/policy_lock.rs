//! The extension's own heavyweight locks: on a table's policy, and on the extension.

use super::extension;
use crate::pg::session::locks;
use pgrx::pg_sys;

/// `objsubid` of these locks. PostgreSQL locks objects with 0, for any user: `ALTER FUNCTION
/// mine() DEPENDS ON EXTENSION ttl_ext` locks the extension without any right to it. Only this
/// extension uses another number.
const OWN_LOCK: u16 = 0x7474;

/// The class of the lock on a table's policy. A change of the policy waits for a batch that uses the old
/// one, and the next batch sees the new one. A lock on the table would not do: what conflicts
/// with a change of label also conflicts with VACUUM.
const POLICY: pg_sys::Oid = pg_sys::RelationRelationId;

/// The class of the lock on the extension: DROP waits for all batches, and no batch begins meanwhile.
const EXTENSION: pg_sys::Oid = pg_sys::ExtensionRelationId;

/// Keeps the policy from changing during this transaction; false if another session is changing
/// it just now.
pub(crate) fn try_share_policy(labelled_table: pg_sys::Oid) -> bool {
    locks::try_object(POLICY, labelled_table, OWN_LOCK, pg_sys::ShareLock)
}

/// Waits for batches under the current policy, and prevents new ones until the end of the
/// transaction.
pub(crate) fn lock_policy_for_change(labelled_table: pg_sys::Oid) {
    locks::object(POLICY, labelled_table, OWN_LOCK, pg_sys::ExclusiveLock);
}

/// Keeps the extension from being dropped during this transaction; false if it is absent, or
/// being dropped just now.
pub(crate) fn try_share_extension() -> bool {
    extension::oid().is_some_and(|extension| {
        locks::try_object(EXTENSION, extension, OWN_LOCK, pg_sys::AccessShareLock)
            // The session that dropped it no longer holds the lock.
            && extension::oid() == Some(extension)
    })
}

/// Waits for batches, and prevents new ones until the end of the transaction.
pub(crate) fn lock_extension_for_drop(extension: pg_sys::Oid) {
    locks::object(EXTENSION, extension, OWN_LOCK, pg_sys::AccessExclusiveLock);
}

//! Heavyweight locks.

use super::extension;
use pgrx::pg_sys;

/// `DEFAULT_LOCKMETHOD` of lock.h, a macro.
const DEFAULT_LOCKMETHOD: u8 = 1;

/// Takes the lock on a relation for the rest of the transaction.
pub(crate) fn relation(relid: pg_sys::Oid, mode: u32) {
    // SAFETY: within a transaction; the relation is looked up again afterwards.
    unsafe { pg_sys::LockRelationOid(relid, mode.cast_signed()) };
}

/// Takes the lock on a relation for the rest of the transaction, if that needs
/// no waiting.
pub(crate) fn try_relation(relid: pg_sys::Oid, mode: u32) -> bool {
    // SAFETY: within a transaction; the relation is looked up again afterwards.
    unsafe { pg_sys::ConditionalLockRelationOid(relid, mode.cast_signed()) }
}

/// Gives up one lock taken by [`try_relation`].
pub(crate) fn release(relid: pg_sys::Oid, mode: u32) {
    // SAFETY: the transaction holds the lock.
    unsafe { pg_sys::UnlockRelationOid(relid, mode.cast_signed()) }
}

/// `objsubid` of the locks that are the extension's own. PostgreSQL locks objects with 0
/// there, whoever asks: `ALTER FUNCTION mine() DEPENDS ON EXTENSION ttl_ext` locks the
/// extension, and needs no right to it. Nobody else takes these.
const OWN_LOCK: u16 = 0x7474;

/// The lock on a table's policy, apart from those on the table: who changes the
/// policy waits for a batch of deletions that goes by the old one, and the next
/// batch sees the new one. A lock on the table would not do: those that conflict
/// with a change of label also conflict with VACUUM.
fn policy_tag(holder: pg_sys::Oid) -> pg_sys::LOCKTAG {
    own_tag(pg_sys::RelationRelationId, holder)
}

/// The lock on the extension: who drops it waits for all batches, and keeps others from
/// beginning.
fn extension_tag(extension: pg_sys::Oid) -> pg_sys::LOCKTAG {
    own_tag(pg_sys::ExtensionRelationId, extension)
}

fn own_tag(class: pg_sys::Oid, object: pg_sys::Oid) -> pg_sys::LOCKTAG {
    pg_sys::LOCKTAG {
        // SAFETY: reads a backend-local variable.
        locktag_field1: unsafe { pg_sys::MyDatabaseId }.to_u32(),
        locktag_field2: class.to_u32(),
        locktag_field3: object.to_u32(),
        locktag_field4: OWN_LOCK,
        locktag_type: pg_sys::LockTagType::LOCKTAG_OBJECT as u8,
        locktag_lockmethodid: DEFAULT_LOCKMETHOD,
    }
}

/// Keeps the policy from being changed during this transaction, if nobody is
/// changing it just now.
pub(crate) fn try_share_policy(holder: pg_sys::Oid) -> bool {
    try_object(&policy_tag(holder), pg_sys::ShareLock)
}

/// Keeps the extension from being dropped during this transaction, if nobody is
/// dropping it just now; false also if it is not there.
pub(crate) fn try_share_extension() -> bool {
    extension::oid().is_some_and(|extension| {
        try_object(&extension_tag(extension), pg_sys::AccessShareLock)
            // Whoever has dropped it has the lock no more.
            && extension::oid() == Some(extension)
    })
}

/// Waits for batches of deletions, and keeps others away until the end of the transaction.
pub(crate) fn lock_extension_for_drop(extension: pg_sys::Oid) {
    let mode = pg_sys::AccessExclusiveLock.cast_signed();
    // SAFETY: a valid tag, within a transaction.
    unsafe { pg_sys::LockAcquire(&extension_tag(extension), mode, false, false) };
}

fn try_object(tag: &pg_sys::LOCKTAG, mode: u32) -> bool {
    // SAFETY: a valid tag, within a transaction, without waiting.
    let result = unsafe { pg_sys::LockAcquire(tag, mode.cast_signed(), false, true) };
    if result == pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL {
        return false;
    }
    // SAFETY: what was committed before the lock was granted must be seen.
    unsafe { pg_sys::AcceptInvalidationMessages() };
    true
}

/// Waits for deletions under the present policy, and keeps others away until
/// the end of the transaction.
pub(crate) fn lock_policy_for_change(holder: pg_sys::Oid) {
    let mode = pg_sys::ExclusiveLock.cast_signed();
    // SAFETY: a valid tag, within a transaction.
    unsafe { pg_sys::LockAcquire(&policy_tag(holder), mode, false, false) };
}

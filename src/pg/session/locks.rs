//! Heavyweight locks.

use crate::error::{Error, Result};
use crate::pg::catalog;
use pgrx::{PgSqlErrorCode, pg_sys};

/// `DEFAULT_LOCKMETHOD` of lock.h, a macro.
const DEFAULT_LOCKMETHOD: u8 = 1;

/// Takes the lock on a relation for the rest of the transaction.
pub(crate) fn relation(relid: pg_sys::Oid, mode: u32) {
    // SAFETY: within a transaction; the relation is looked up again afterwards.
    unsafe { pg_sys::LockRelationOid(relid, mode.cast_signed()) };
}

/// Takes the lock on a relation for the rest of the transaction, if that needs no waiting.
pub(crate) fn try_relation(relid: pg_sys::Oid, mode: u32) -> bool {
    // SAFETY: within a transaction; the relation is looked up again afterwards.
    unsafe { pg_sys::ConditionalLockRelationOid(relid, mode.cast_signed()) }
}

/// As [`try_relation`]; 55P03 if it would have to wait.
pub(crate) fn relation_or_busy(relid: pg_sys::Oid, mode: u32) -> Result<()> {
    match try_relation(relid, mode) {
        true => Ok(()),
        false => Err(busy(relid)),
    }
}

/// 55P03.
pub(crate) fn busy(relid: pg_sys::Oid) -> Error {
    let name = catalog::qualified_name(relid);
    Error::new(
        PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE,
        format!("could not obtain lock on relation {name}"),
    )
}

/// Gives up one lock taken by [`try_relation`].
pub(crate) fn release(relid: pg_sys::Oid, mode: u32) {
    // SAFETY: the caller has taken the lock by `try_relation`; to release one that is not held is a WARNING.
    unsafe { pg_sys::UnlockRelationOid(relid, mode.cast_signed()) }
}

/// Takes the lock on an object of this database for the rest of the transaction.
pub(crate) fn object(class: pg_sys::Oid, object: pg_sys::Oid, sub_object: u16, mode: u32) {
    // SAFETY: within a transaction; the object need not exist.
    unsafe { pg_sys::LockDatabaseObject(class, object, sub_object, mode.cast_signed()) };
}

/// Takes the lock on an object of this database for the rest of the transaction, if that needs no waiting.
///
/// PostgreSQL's `ConditionalLockDatabaseObject` came with a minor release: a library that calls it
/// does not load into a server of 16.2.
pub(crate) fn try_object(
    class: pg_sys::Oid,
    object: pg_sys::Oid,
    sub_object: u16,
    mode: u32,
) -> bool {
    let tag = pg_sys::LOCKTAG {
        // SAFETY: reads a variable that only this process writes.
        locktag_field1: unsafe { pg_sys::MyDatabaseId }.to_u32(),
        locktag_field2: class.to_u32(),
        locktag_field3: object.to_u32(),
        locktag_field4: sub_object,
        locktag_type: pg_sys::LockTagType::LOCKTAG_OBJECT as u8,
        locktag_lockmethodid: DEFAULT_LOCKMETHOD,
    };
    // SAFETY: all fields of the tag are set, and a transaction is open; does not wait.
    let result = unsafe { pg_sys::LockAcquire(&tag, mode.cast_signed(), false, true) };
    if result == pg_sys::LockAcquireResult::LOCKACQUIRE_NOT_AVAIL {
        return false;
    }
    // SAFETY: makes visible what was committed before the lock was granted.
    unsafe { pg_sys::AcceptInvalidationMessages() };
    true
}

//! Heavyweight locks.

use crate::error::{Error, Result};
use crate::pg::catalog;
use pgrx::{PgSqlErrorCode, pg_sys};

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
pub(crate) fn try_object(
    class: pg_sys::Oid,
    object: pg_sys::Oid,
    sub_object: u16,
    mode: u32,
) -> bool {
    // SAFETY: within a transaction; the object need not exist.
    unsafe { pg_sys::ConditionalLockDatabaseObject(class, object, sub_object, mode.cast_signed()) }
}

//! The databases of the server, read by a process that is connected to none.

use super::rows::{Cache, Catalog};
use crate::pg::abi::encoding;
use pgrx::pg_sys;
use std::collections::HashSet;

/// `DATCONNLIMIT_INVALID_DB`: a DROP DATABASE was interrupted.
const INVALID: i32 = -2;

/// OIDs of databases.
#[derive(Debug, Default)]
pub(crate) struct Databases {
    /// Those that exist.
    pub(crate) all: HashSet<u32>,
    /// Those that accept connections, without templates.
    pub(crate) allowed: HashSet<u32>,
}

// SAFETY: rows of pg_database begin with this struct; the scan uses no index.
const DATABASES: Catalog<pg_sys::FormData_pg_database> =
    unsafe { Catalog::new(pg_sys::DatabaseRelationId, None) };
// SAFETY: DATABASEOID is the syscache of pg_database by OID, whose rows begin with this struct.
const DATABASE: Cache<pg_sys::FormData_pg_database> =
    unsafe { Cache::new(pg_sys::SysCacheIdentifier::DATABASEOID) };

/// Reads pg_database; within a transaction.
pub(crate) fn connectable() -> Databases {
    let mut databases = Databases::default();
    DATABASES.scan(&[], &mut |row| {
        let oid = row.oid.to_u32();
        databases.all.insert(oid);
        if row.datallowconn && !row.datistemplate && row.datconnlimit != INVALID {
            databases.allowed.insert(oid);
        }
        false
    });
    databases
}

pub(crate) fn is_template(database: u32) -> bool {
    DATABASE
        .get(database.into(), |row| row.datistemplate)
        .unwrap_or(false)
}

/// The name of the database; empty if there is none.
pub(crate) fn name(database: pg_sys::Oid) -> String {
    // SAFETY: a catalog look-up within a transaction: a palloc'd C string, or null.
    unsafe { encoding::from_nullable(pg_sys::get_database_name(database)) }.unwrap_or_default()
}

/// The OID of the database of that name.
pub(crate) fn oid(name: &core::ffi::CStr) -> Option<u32> {
    // SAFETY: a catalog look-up within a transaction.
    let oid = unsafe { pg_sys::get_database_oid(name.as_ptr(), true) };
    (oid != pg_sys::InvalidOid).then(|| oid.to_u32())
}

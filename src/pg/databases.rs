//! The databases of the server, read by a process that is connected to none.

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

/// Reads pg_database; within a transaction.
pub(crate) fn connectable() -> Databases {
    let mut databases = Databases::default();
    let lock = pg_sys::AccessShareLock.cast_signed();
    // SAFETY: a scan over a locked shared catalog, closed before return.
    unsafe {
        let relation = pg_sys::table_open(pg_sys::DatabaseRelationId, lock);
        let nobody = core::ptr::null_mut();
        let scan = pg_sys::systable_beginscan(
            relation,
            pg_sys::InvalidOid,
            false,
            nobody,
            0,
            core::ptr::null_mut(),
        );
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            let row = pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_database>();
            let oid = (*row).oid.to_u32();
            databases.all.insert(oid);
            if (*row).datallowconn && !(*row).datistemplate && (*row).datconnlimit != INVALID {
                databases.allowed.insert(oid);
            }
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(relation, lock);
    }
    databases
}

/// Whether the database is a template.
pub(crate) fn is_template(database: u32) -> bool {
    // SAFETY: the tuple is read before its release.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::DATABASEOID as i32;
        let key = pg_sys::Datum::from(pg_sys::Oid::from(database));
        let tuple = pg_sys::SearchSysCache1(cache, key);
        if tuple.is_null() {
            return false;
        }
        let row = pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_database>();
        let is_template = (*row).datistemplate;
        pg_sys::ReleaseSysCache(tuple);
        is_template
    }
}

/// The OID of the database of that name.
pub(crate) fn oid(name: &core::ffi::CStr) -> Option<u32> {
    // SAFETY: a catalog look-up within a transaction.
    let oid = unsafe { pg_sys::get_database_oid(name.as_ptr(), true) };
    (oid != pg_sys::InvalidOid).then(|| oid.to_u32())
}

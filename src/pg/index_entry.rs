//! Entries of pg_index, as they are stored.
//!
//! They are read without a lock on the index or its table, which their owner could block for as
//! long as they like; and as stored: what PostgreSQL returns for an open index
//! (`RelationGetIndexPredicate`) is simplified, which runs functions of the owner as the current
//! user.

use pgrx::pg_sys;
use std::ffi::{CStr, CString};

/// Reads the index's entry; `None` if there is none.
pub(crate) fn with<T>(
    index: pg_sys::Oid,
    read: &dyn Fn(pg_sys::HeapTuple, &pg_sys::FormData_pg_index) -> T,
) -> Option<T> {
    // SAFETY: a syscache look-up within a transaction; what is read of the tuple is copied
    // before its release.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::INDEXRELID as i32;
        let tuple = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(index));
        if tuple.is_null() {
            return None;
        }
        let form = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_index>();
        let found = read(tuple, form);
        pg_sys::ReleaseSysCache(tuple);
        Some(found)
    }
}

/// Calls `see` with the entries of the table's indexes until that returns true: including those
/// of a partitioned table, invalid ones, and those being built or dropped.
pub(crate) fn each_of(relid: pg_sys::Oid, see: &mut dyn FnMut(&pg_sys::FormData_pg_index) -> bool) {
    // SAFETY: a systable scan over a locked catalog, closed before return; the
    // key's function is oideq, of which F_OIDEQ is the OID.
    unsafe {
        let share = pg_sys::AccessShareLock.cast_signed();
        let catalog = pg_sys::table_open(pg_sys::IndexRelationId, share);
        let mut key = pg_sys::ScanKeyData::default();
        pg_sys::ScanKeyInit(
            &mut key,
            pg_sys::Anum_pg_index_indrelid as i16,
            pg_sys::BTEqualStrategyNumber as u16,
            pg_sys::Oid::from(pg_sys::F_OIDEQ),
            pg_sys::Datum::from(relid),
        );
        let by_table = pg_sys::Oid::from(pg_sys::IndexIndrelidIndexId);
        let none = core::ptr::null_mut();
        let scan = pg_sys::systable_beginscan(catalog, by_table, true, none, 1, &mut key);
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null()
                || see(&*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_index>())
            {
                break;
            }
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(catalog, share);
    }
}

/// A column of pg_index that holds a node tree.
///
/// # Safety
/// A tuple of the syscache for pg_index.
pub(crate) unsafe fn tree(tuple: pg_sys::HeapTuple, number: u32) -> Option<CString> {
    // SAFETY: as required of the caller; the column is of a text type.
    unsafe {
        let datum = attribute(tuple, number)?;
        let text = pg_sys::text_to_cstring(datum.cast_mut_ptr());
        Some(CStr::from_ptr(text).to_owned())
    }
}

/// A column of pg_index, unless it is NULL.
///
/// # Safety
/// A tuple of the syscache for pg_index.
pub(crate) unsafe fn attribute(tuple: pg_sys::HeapTuple, number: u32) -> Option<pg_sys::Datum> {
    let mut is_null = false;
    let cache = pg_sys::SysCacheIdentifier::INDEXRELID as i32;
    // SAFETY: as required of the caller.
    let datum = unsafe { pg_sys::SysCacheGetAttr(cache, tuple, number as i16, &raw mut is_null) };
    (!is_null).then_some(datum)
}

/// The first of the index's expressions, in the current memory context.
///
/// # Safety
/// A tuple of the syscache for pg_index.
pub(crate) unsafe fn first_expression(tuple: pg_sys::HeapTuple) -> Option<*mut pg_sys::Node> {
    // SAFETY: as required of the caller; the column holds a list of expressions.
    unsafe {
        let text = tree(tuple, pg_sys::Anum_pg_index_indexprs)?;
        let expressions = pg_sys::stringToNode(text.as_ptr()).cast::<pg_sys::List>();
        super::lists::nth::<pg_sys::Node>(expressions, 0)
    }
}

/// The index's predicate, in the current memory context: all its conditions in one.
///
/// # Safety
/// A tuple of the syscache for pg_index.
pub(crate) unsafe fn predicate(tuple: pg_sys::HeapTuple) -> Option<*mut pg_sys::Node> {
    // SAFETY: as required of the caller; the column holds an expression.
    unsafe {
        let text = tree(tuple, pg_sys::Anum_pg_index_indpred)?;
        Some(pg_sys::stringToNode(text.as_ptr()).cast())
    }
}

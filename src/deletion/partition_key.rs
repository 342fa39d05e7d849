//! The keys of partitioned tables, from the syscache: the tables are not locked.

use crate::store::dates::DateKind;
use pgrx::pg_sys;

/// The beginning of `FormData_pg_partitioned_table` (catalog/pg_partitioned_table.h), which
/// pgrx does not bind.
#[repr(C)]
struct Row {
    partrelid: pg_sys::Oid,
    partstrat: core::ffi::c_char,
    partnatts: i16,
    partdefid: pg_sys::Oid,
    partattrs: pg_sys::int2vector,
}

/// `Anum_pg_partitioned_table_partclass`
const PARTCLASS: i16 = 6;

/// Whether the table is partitioned by RANGE, first by the column of that name and kind in its
/// usual order: a user's operator class may order times otherwise.
pub(crate) fn is_range_by(table: pg_sys::Oid, name: &str, kind: DateKind) -> bool {
    let Some(column) = crate::pg::catalog::attribute(table, name) else {
        return false;
    };
    let usual = match kind {
        DateKind::Timestamptz => pg_sys::TIMESTAMPTZ_BTREE_OPS_OID,
        DateKind::Timestamp => pg_sys::TIMESTAMP_BTREE_OPS_OID,
        DateKind::Date => pg_sys::DATE_BTREE_OPS_OID,
    };
    column.type_oid == kind.type_oid() && first_of_range(table) == Some((column.attno, usual))
}

/// The first column of a table's key, 0 for an expression, and its operator class; `None`
/// if the table is not partitioned by RANGE.
fn first_of_range(table: pg_sys::Oid) -> Option<(i16, pg_sys::Oid)> {
    let cache = pg_sys::SysCacheIdentifier::PARTRELID as i32;
    let mut is_null = false;
    // SAFETY: a syscache look-up within a transaction; the tuple is read before its release.
    // A key has at least one column, and partclass is an oidvector that is never NULL.
    unsafe {
        let tuple = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(table));
        if tuple.is_null() {
            return None;
        }
        let row = &*pg_sys::GETSTRUCT(tuple).cast::<Row>();
        let classes = pg_sys::SysCacheGetAttr(cache, tuple, PARTCLASS, &raw mut is_null);
        let classes = classes.cast_mut_ptr::<pg_sys::oidvector>();
        let first = (*row.partattrs.values.as_ptr(), *(*classes).values.as_ptr());
        let is_range = row.partstrat.cast_unsigned() == b'r';
        pg_sys::ReleaseSysCache(tuple);
        is_range.then_some(first)
    }
}

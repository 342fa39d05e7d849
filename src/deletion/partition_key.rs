//! The keys of partitioned tables, from the syscache: the tables are not locked.

use crate::pg::rows::Cache;
use crate::store::dates::DateKind;
use pgrx::pg_sys;

/// The beginning of `FormData_pg_partitioned_table` (catalog/pg_partitioned_table.h), which
/// pgrx does not bind.
#[repr(C)]
struct KeyRow {
    partrelid: pg_sys::Oid,
    partstrat: core::ffi::c_char,
    partnatts: i16,
    partdefid: pg_sys::Oid,
    partattrs: pg_sys::int2vector,
}

/// `Anum_pg_partitioned_table_partclass`
const PARTCLASS: u32 = 6;

// SAFETY: the cache of pg_partitioned_table by the table's OID.
const KEYS: Cache<KeyRow> = unsafe { Cache::new(pg_sys::SysCacheIdentifier::PARTRELID) };

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
    KEYS.get(table, |row| {
        let classes = row.value(PARTCLASS)?.cast_mut_ptr::<pg_sys::oidvector>();
        // SAFETY: a key has at least one column, and partclass is an oidvector.
        let first = unsafe { (*row.partattrs.values.as_ptr(), *(*classes).values.as_ptr()) };
        (row.partstrat.cast_unsigned() == b'r').then_some(first)
    })
    .flatten()
}

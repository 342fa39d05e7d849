//! The keys of partitioned tables, from the syscache: the tables are not locked.

use crate::pg::{catalog, partition};
use crate::store::dates::DateKind;
use pgrx::pg_sys;

/// Whether the table is partitioned by RANGE, first by the column of that name and kind in its
/// usual order: a user's operator class may order times otherwise.
pub(crate) fn is_range_by(table: pg_sys::Oid, name: &str, kind: DateKind) -> bool {
    let Some(column) = catalog::attribute(table, name) else {
        return false;
    };
    let usual = match kind {
        DateKind::Timestamptz => pg_sys::TIMESTAMPTZ_BTREE_OPS_OID,
        DateKind::Timestamp => pg_sys::TIMESTAMP_BTREE_OPS_OID,
        DateKind::Date => pg_sys::DATE_BTREE_OPS_OID,
    };
    column.type_oid == kind.type_oid()
        && partition::first_of_range(table) == Some((column.attno, usual))
}

//! Partition keys and bounds for RANGE, read from the syscache without locking the tables.

use super::expressions;
use super::rows::{self, Cache};
use crate::pg::abi::lists;
use pgrx::pg_sys::{self, Datum, NodeTag, Oid};

// SAFETY: the cache of pg_partitioned_table by the table's OID.
const KEYS: Cache<pg_sys::FormData_pg_partitioned_table> =
    unsafe { Cache::new(pg_sys::SysCacheIdentifier::PARTRELID) };

/// A partition key for RANGE.
pub(crate) struct RangeKey {
    /// The first column, 0 for an expression,
    pub(crate) first: i16,
    /// and its operator class.
    pub(crate) first_class: Oid,
    pub(crate) columns: i16,
}

/// The table's partition key; `None` if the table is not partitioned by RANGE.
pub(crate) fn range_key(table: Oid) -> Option<RangeKey> {
    KEYS.get(table, |row| {
        let classes = row
            .value(pg_sys::Anum_pg_partitioned_table_partclass)?
            .cast_mut_ptr::<pg_sys::oidvector>();
        // SAFETY: a key has at least one column, and partclass is an oidvector.
        let (first, first_class) =
            unsafe { (*row.partattrs.values.as_ptr(), *(*classes).values.as_ptr()) };
        (row.partstrat.cast_unsigned() == b'r').then_some(RangeKey {
            first,
            first_class,
            columns: row.partnatts,
        })
    })
    .flatten()
}

/// The first values of the lower and the upper bound of a partition, if they are of this pass-by-value type.
/// `None` for the default partition.
pub(crate) fn ends_of_range(partition: Oid, type_oid: Oid) -> Option<[Option<Datum>; 2]> {
    // SAFETY: the column holds the text of a node, which is copied into the current memory context.
    let text = rows::CLASS.get(partition, |row| unsafe {
        let bound = row.value(pg_sys::Anum_pg_class_relpartbound)?;
        Some(pg_sys::text_to_cstring(bound.cast_mut_ptr()))
    })??;
    // SAFETY: nodes in the current memory context, whose tags tell their types.
    unsafe {
        let spec = pg_sys::stringToNode(text).cast::<pg_sys::PartitionBoundSpec>();
        if expressions::tag(spec) != Some(NodeTag::T_PartitionBoundSpec) || (*spec).is_default {
            return None;
        }
        let first = |datums: *mut pg_sys::List| {
            if expressions::tag(datums) != Some(NodeTag::T_List) {
                return None;
            }
            let end = lists::nth::<pg_sys::PartitionRangeDatum>(datums, 0)?;
            if expressions::tag(end) != Some(NodeTag::T_PartitionRangeDatum)
                || (*end).kind != pg_sys::PartitionRangeDatumKind::PARTITION_RANGE_DATUM_VALUE
                || expressions::tag((*end).value) != Some(NodeTag::T_Const)
            {
                return None;
            }
            let value = &*(*end).value.cast::<pg_sys::Const>();
            (value.consttype == type_oid && !value.constisnull).then_some(value.constvalue)
        };
        Some([first((*spec).lowerdatums), first((*spec).upperdatums)])
    }
}

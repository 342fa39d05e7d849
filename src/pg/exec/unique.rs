//! Unique and exclusion indexes.

use super::scan::KeyColumn;
use super::table::Table;
use crate::pg::abi::lists;
use crate::pg::catalog::index;
use pgrx::pg_sys;

/// An index that can reject rows.
#[derive(Debug)]
pub(crate) struct Unique {
    pub(crate) index: pg_sys::Oid,
    pub(crate) parts: Vec<KeyColumn>,
    pub(crate) nulls_not_distinct: bool,
    /// The columns of the key and the predicate; 0 is the whole row, negative numbers are system
    /// columns.
    pub(crate) columns: Vec<i16>,
    /// Whether it has expressions or a predicate.
    pub(crate) needs_evaluation: bool,
    /// Whether its constraint is not deferrable.
    pub(crate) is_immediate: bool,
}

/// The table's unique and exclusion indexes. Those being built count: they can reject rows before
/// an invalidation reaches this session.
pub(crate) fn of(table: Table<'_>) -> Vec<Unique> {
    let share = pg_sys::AccessShareLock.cast_signed();
    let mut found = vec![];
    // SAFETY: the table is open; the list is a copy. Each index is locked while it is open.
    unsafe {
        for oid in lists::oids(pg_sys::RelationGetIndexList(table.as_ptr())) {
            let index = pg_sys::index_open(oid, share);
            let form = &*(*index).rd_index;
            if (form.indisunique || form.indisexclusion) && form.indislive {
                found.push(read(index));
            }
            pg_sys::index_close(index, share);
        }
    }
    found
}

/// # Safety
/// The relation is an open unique or exclusion index.
unsafe fn read(open: pg_sys::Relation) -> Unique {
    // SAFETY: as required of the caller; the index has an operator for each column.
    unsafe {
        let info = &mut *pg_sys::BuildIndexInfo(open);
        let is_exclusion = !info.ii_ExclusionOps.is_null();
        if !is_exclusion {
            pg_sys::BuildSpeculativeIndexInfo(open, info);
        }
        let (procedures, strategies) = if is_exclusion {
            (info.ii_ExclusionProcs, info.ii_ExclusionStrats)
        } else {
            (info.ii_UniqueProcs, info.ii_UniqueStrats)
        };
        let count = usize::try_from(info.ii_NumIndexKeyAttrs).unwrap_or(0);
        let part = |at| KeyColumn {
            attno: info.ii_IndexAttrNumbers[at],
            procedure: *procedures.add(at),
            strategy: *strategies.add(at),
            collation: *(*open).rd_indcollation.add(at),
        };
        Unique {
            index: (*open).rd_id,
            parts: (0..count).map(part).collect(),
            nulls_not_distinct: info.ii_NullsNotDistinct,
            columns: index::columns_of(info),
            needs_evaluation: !info.ii_Expressions.is_null() || !info.ii_Predicate.is_null(),
            is_immediate: (*(*open).rd_index).indimmediate,
        }
    }
}

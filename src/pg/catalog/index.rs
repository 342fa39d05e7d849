//! Indexes.

use super::index_entry::{self, IndexRow};
use super::syntax::Node;
use crate::pg::abi::encoding;
use crate::pg::catalog;
use pgrx::pg_sys;

/// The OIDs of the relation's indexes, including those of a partitioned table and invalid ones.
/// Takes no locks and runs no user-defined code, so that any user may ask about any table.
pub(crate) fn list(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let mut found = index_entry::collect(relid, |form| form.indislive.then_some(form.indexrelid));
    found.sort_unstable_by_key(|index| index.to_u32());
    found
}

/// The index of the relation's constraint of that name.
pub(crate) fn of_constraint(relid: pg_sys::Oid, name: &str) -> Option<pg_sys::Oid> {
    let name = encoding::to_server(name)?;
    // SAFETY: the name outlives the call; syscache look-ups within a transaction.
    unsafe {
        let constraint = pg_sys::get_relation_constraint_oid(relid, name.as_ptr(), true);
        let index =
            (constraint != pg_sys::InvalidOid).then(|| pg_sys::get_constraint_index(constraint))?;
        (index != pg_sys::InvalidOid).then_some(index)
    }
}

pub(crate) fn table_of(index: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // SAFETY: a syscache look-up within a transaction.
    let table = unsafe { pg_sys::IndexGetRelation(index, true) };
    (table != pg_sys::InvalidOid).then_some(table)
}

/// The name of a table's index, qualified with the table's schema, as a user would write it.
pub(crate) fn qualified_name(table: pg_sys::Oid, name: &str) -> String {
    // SAFETY: a syscache look-up within a transaction.
    let schema = catalog::schema_name(unsafe { pg_sys::get_rel_namespace(table) });
    schema + "." + &catalog::quote_identifier(name)
}

/// Whether other rows can make PostgreSQL reject a row: the relation has a unique index or an
/// exclusion constraint, even one that is invalid or being built. Reads the catalog without a
/// lock on the relation.
pub(crate) fn is_any_unique(relid: pg_sys::Oid) -> bool {
    has_index(relid, |form| form.indisunique || form.indisexclusion)
}

/// Whether the column is one of a unique index's key.
pub(crate) fn is_in_key(relid: pg_sys::Oid, attno: i16) -> bool {
    has_index(relid, |form| {
        form.indisunique && form.key_columns().contains(&attno)
    })
}

/// Whether the column alone is the key of a unique index.
pub(crate) fn is_key(relid: pg_sys::Oid, attno: i16) -> bool {
    has_index(relid, |form| {
        form.indisunique && form.key_columns() == [attno]
    })
}

fn has_index(relid: pg_sys::Oid, is_one: impl Fn(&IndexRow<'_>) -> bool) -> bool {
    let find = |form: &IndexRow<'_>| (form.indislive && is_one(form)).then_some(());
    index_entry::find(relid, find).is_some()
}

/// The columns that the key and the predicate depend on; numbers up to 0 are system columns or
/// the whole row.
///
/// # Safety
/// An index's information.
pub(crate) unsafe fn columns_of(info: *mut pg_sys::IndexInfo) -> Vec<i16> {
    // SAFETY: as required of the caller; the trees are only read.
    unsafe {
        let count = usize::try_from((*info).ii_NumIndexKeyAttrs).unwrap_or(0);
        let info = &*info;
        let mut columns: Vec<i16> = info.ii_IndexAttrNumbers[..count]
            .iter()
            .copied()
            .filter(|&attno| attno != 0)
            .collect();
        for tree in [info.ii_Expressions, info.ii_Predicate] {
            columns.extend(Node::new(tree.cast()).map_or(vec![], Node::columns));
        }
        columns.sort_unstable();
        columns.dedup();
        columns
    }
}

//! Entries of pg_index, as they are stored.
//!
//! They are read without a lock on the index or its table, which their owner could block for as
//! long as they like; and as stored: what PostgreSQL returns for an open index
//! (`RelationGetIndexPredicate`) is simplified, which runs functions of the owner as the current
//! user.

use super::rows::{Cache, Catalog, CatalogRow, KeyDatum};
use super::stored_tree::StoredTree;
use super::syntax::Node;
use pgrx::pg_sys;
use std::ffi::CStr;

/// An index's entry.
pub(crate) type IndexRow<'a> = CatalogRow<'a, pg_sys::FormData_pg_index>;

// SAFETY: the cache of pg_index by the index's OID.
const INDEX: Cache<pg_sys::FormData_pg_index> =
    unsafe { Cache::new(pg_sys::SysCacheIdentifier::INDEXRELID) };
// SAFETY: rows of pg_index begin with this struct; the index begins with the table's OID (indrelid).
const INDEXES: Catalog<pg_sys::FormData_pg_index> = unsafe {
    let by_table = pg_sys::Oid::from_u32(pg_sys::IndexIndrelidIndexId);
    Catalog::new(pg_sys::IndexRelationId, Some(by_table))
};

/// Reads the index's entry; `None` if there is none.
pub(crate) fn with<T>(index: pg_sys::Oid, read: impl FnOnce(&IndexRow<'_>) -> T) -> Option<T> {
    INDEX.get(index, read)
}

/// What `take` makes of the entries of the table's indexes: including those of a partitioned table, invalid ones, and
/// those being built or dropped.
pub(crate) fn collect<T>(
    relid: pg_sys::Oid,
    take: impl FnMut(&IndexRow<'_>) -> Option<T>,
) -> Vec<T> {
    INDEXES.collect(&[of_table(relid)], take)
}

/// The first of these.
pub(crate) fn find<T>(
    relid: pg_sys::Oid,
    take: impl FnMut(&IndexRow<'_>) -> Option<T>,
) -> Option<T> {
    INDEXES.find(&[of_table(relid)], take)
}

fn of_table(relid: pg_sys::Oid) -> (i16, KeyDatum<'static>) {
    (pg_sys::Anum_pg_index_indrelid as i16, KeyDatum::Oid(relid))
}

impl IndexRow<'_> {
    /// The first column of the key; 0 is an expression.
    pub(crate) fn first_column(&self) -> i16 {
        // SAFETY: pg_index has at least one key column in each row.
        unsafe { *self.indkey.values.as_ptr() }
    }

    /// The columns of the key; 0 is an expression.
    pub(crate) fn key_columns(&self) -> &[i16] {
        let count = usize::try_from(self.indnkeyatts).unwrap_or(0);
        // SAFETY: indkey has a number for each of the index's columns, the key's first.
        unsafe { core::slice::from_raw_parts(self.indkey.values.as_ptr(), count) }
    }

    /// The first column's operator class.
    pub(crate) fn first_class(&self) -> Option<pg_sys::Oid> {
        let classes = self.value(pg_sys::Anum_pg_index_indclass)?;
        // SAFETY: an oidvector with at least one value.
        let classes = unsafe { &*classes.cast_mut_ptr::<pg_sys::oidvector>() };
        // SAFETY: as above.
        Some(unsafe { *classes.values.as_ptr() })
    }

    /// Whether the first column's operator class is of this family, for this type.
    pub(crate) fn is_ordered_by(&self, family: pg_sys::Oid, type_oid: pg_sys::Oid) -> bool {
        // SAFETY: the functions look the OIDs up in the syscache; an unknown one is no fault.
        self.first_class().is_some_and(|class| unsafe {
            pg_sys::get_opclass_family(class) == family
                && pg_sys::get_opclass_input_type(class) == type_oid
        })
    }

    /// The first column's flags (`INDOPTION_DESC` and the like).
    pub(crate) fn first_option(&self) -> u32 {
        let options = self.value(pg_sys::Anum_pg_index_indoption);
        // SAFETY: an int2vector with at least one value.
        let first = options
            .map(|it| unsafe { *(*it.cast_mut_ptr::<pg_sys::int2vector>()).values.as_ptr() });
        first.map_or(0, |option| u32::from(option.cast_unsigned()))
    }

    /// Whether the index has a predicate.
    pub(crate) fn is_partial(&self) -> bool {
        self.value(pg_sys::Anum_pg_index_indpred).is_some()
    }

    /// The index's predicate as it is stored: all its conditions in one.
    pub(crate) fn stored_predicate(&self) -> Option<StoredTree> {
        self.tree(pg_sys::Anum_pg_index_indpred)
    }

    /// The index's predicate, in the current memory context.
    pub(crate) fn predicate(&self) -> Option<Node<'_>> {
        // SAFETY: `read` allocates the tree in the current memory context, where nothing changes it.
        unsafe { Node::new(self.stored_predicate()?.read()) }
    }

    /// The first of the index's expressions, in the current memory context.
    pub(crate) fn first_expression(&self) -> Option<Node<'_>> {
        // SAFETY: `read` allocates the tree in the current memory context, where nothing changes it.
        let expressions = unsafe { Node::new(self.tree(pg_sys::Anum_pg_index_indexprs)?.read()) };
        expressions?.cast::<pg_sys::List>()?.items().next()
    }

    /// All of the index's expressions, in the current memory context.
    pub(crate) fn expressions(&self) -> Option<Node<'_>> {
        // SAFETY: `read` allocates the tree in the current memory context, where nothing changes it.
        unsafe { Node::new(self.tree(pg_sys::Anum_pg_index_indexprs)?.read()) }
    }

    fn tree(&self, column: u32) -> Option<StoredTree> {
        let text = self.value(column)?;
        // SAFETY: columns with node trees are texts; what is read is copied.
        unsafe {
            let text = pg_sys::text_to_cstring(text.cast_mut_ptr());
            Some(StoredTree::new(CStr::from_ptr(text)))
        }
    }
}

//! Defaults and generation expressions of columns, as stored: the table is not locked, and
//! nothing is simplified, which would run functions of its owner.

use super::expressions;
use super::rows::{Catalog, CatalogRow, KeyDatum};
use super::syntax::Node as Tree;
use pgrx::pg_sys::{self, Expr, Node};

// SAFETY: pg_attrdef and its index by table and column.
const DEFAULTS: Catalog<pg_sys::FormData_pg_attrdef> = unsafe {
    Catalog::new(
        pg_sys::AttrDefaultRelationId,
        Some(pg_sys::Oid::from_u32(pg_sys::AttrDefaultIndexId)),
    )
};

/// Whether the column has this default or generation expression.
///
/// # Safety
/// `expected` is an expression.
pub(crate) unsafe fn is_stored(relid: pg_sys::Oid, attno: i16, expected: *mut Expr) -> bool {
    let keys = [
        (pg_sys::Anum_pg_attrdef_adrelid as i16, KeyDatum::Oid(relid)),
        (pg_sys::Anum_pg_attrdef_adnum as i16, KeyDatum::Int2(attno)),
    ];
    // SAFETY: as required of the caller; the column holds the text of an expression.
    let is_expected = |text: pg_sys::Datum| unsafe {
        let text = pg_sys::text_to_cstring(text.cast_mut_ptr());
        expressions::same(pg_sys::stringToNode(text).cast::<Node>(), expected)
    };
    let find = |row: &CatalogRow<'_, pg_sys::FormData_pg_attrdef>| {
        Some(is_expected(row.value(pg_sys::Anum_pg_attrdef_adbin)?))
    };
    DEFAULTS.find(&keys, find) == Some(true)
}

/// The first that `take` makes of the default and generation expressions of the table: of the column, whether it is
/// generated, and the expression.
pub(crate) fn find<T>(
    relid: pg_sys::Oid,
    take: impl Fn(i16, bool, Tree<'_>) -> Option<T>,
) -> Option<T> {
    let key = (pg_sys::Anum_pg_attrdef_adrelid as i16, KeyDatum::Oid(relid));
    DEFAULTS.find(&[key], |row| {
        let text = row.value(pg_sys::Anum_pg_attrdef_adbin)?;
        // SAFETY: the column holds the text of an expression, read into the current memory
        // context; the syscache has the table's column.
        unsafe {
            let text = pg_sys::text_to_cstring(text.cast_mut_ptr());
            let tree = Tree::new(pg_sys::stringToNode(text).cast::<Node>());
            let generated = pg_sys::get_attgenerated(relid, row.adnum) != 0;
            take(row.adnum, generated, tree?)
        }
    })
}

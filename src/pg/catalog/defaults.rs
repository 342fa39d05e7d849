//! Defaults and generation expressions of columns, as stored: the table is not locked, and
//! nothing is simplified, which would run functions of its owner.

use super::expressions;
use super::rows::{Catalog, KeyDatum};
use super::syntax::Node as Tree;
use pgrx::pg_sys::{self, Expr, Node};

/// catalog/pg_attrdef.h, which pgrx does not bind.
mod pg_attrdef {
    use pgrx::pg_sys::Oid;

    pub(in crate::pg) const RELATION: Oid = Oid::from_u32(2604);
    pub(in crate::pg) const ADRELID_ADNUM_INDEX: Oid = Oid::from_u32(2656);
    pub(in crate::pg) const ADRELID: i16 = 2;
    pub(in crate::pg) const ADNUM: i16 = 3;
    pub(in crate::pg) const ADBIN: u32 = 4;

    #[repr(C)]
    pub(in crate::pg) struct DefaultRow {
        oid: Oid,
        adrelid: Oid,
        pub(crate) adnum: i16,
    }
}

// SAFETY: pg_attrdef and its index by table and column.
const DEFAULTS: Catalog<pg_attrdef::DefaultRow> =
    unsafe { Catalog::new(pg_attrdef::RELATION, Some(pg_attrdef::ADRELID_ADNUM_INDEX)) };

/// Whether the column has this default or generation expression.
///
/// # Safety
/// `expected` is an expression.
pub(crate) unsafe fn is_stored(relid: pg_sys::Oid, attno: i16, expected: *mut Expr) -> bool {
    let keys = [
        (pg_attrdef::ADRELID, KeyDatum::Oid(relid)),
        (pg_attrdef::ADNUM, KeyDatum::Int2(attno)),
    ];
    let mut found = false;
    DEFAULTS.scan(&keys, &mut |row| {
        // SAFETY: as required of the caller; the column holds the text of an expression.
        found = row.value(pg_attrdef::ADBIN).is_some_and(|text| unsafe {
            let text = pg_sys::text_to_cstring(text.cast_mut_ptr());
            expressions::same(pg_sys::stringToNode(text).cast::<Node>(), expected)
        });
        true
    });
    found
}

/// Calls `see` with each default and generation expression of the table until it returns true: the
/// column, whether it is generated, and the expression.
pub(crate) fn each_of(relid: pg_sys::Oid, see: &mut dyn FnMut(i16, bool, Tree<'_>) -> bool) {
    let key = (pg_attrdef::ADRELID, KeyDatum::Oid(relid));
    DEFAULTS.scan(&[key], &mut |row| {
        let Some(text) = row.value(pg_attrdef::ADBIN) else {
            return false;
        };
        // SAFETY: the column holds the text of an expression, read into the current memory
        // context; the syscache has the table's column.
        unsafe {
            let text = pg_sys::text_to_cstring(text.cast_mut_ptr());
            let tree = Tree::new(pg_sys::stringToNode(text).cast::<Node>());
            let generated = pg_sys::get_attgenerated(relid, row.adnum) != 0;
            tree.is_some_and(|tree| see(row.adnum, generated, tree))
        }
    });
}

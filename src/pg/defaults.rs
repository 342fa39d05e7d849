//! Defaults and generation expressions of columns, as stored: the table is not locked, and
//! nothing is simplified, which would run functions of its owner.

use super::nodes;
use pgrx::pg_sys::{self, Expr, Node};

/// catalog/pg_attrdef.h, which pgrx does not bind.
mod pg_attrdef {
    use pgrx::pg_sys::Oid;

    pub(super) const RELATION: Oid = Oid::from_u32(2604);
    pub(super) const ADRELID_ADNUM_INDEX: Oid = Oid::from_u32(2656);
    pub(super) const ADRELID: i16 = 2;
    pub(super) const ADNUM: i16 = 3;
    pub(super) const ADBIN: i32 = 4;
}

/// Whether the column has this default or generation expression.
///
/// # Safety
/// `expected` is an expression.
pub(crate) unsafe fn is_stored(relid: pg_sys::Oid, attno: i16, expected: *mut Expr) -> bool {
    let equal = pg_sys::BTEqualStrategyNumber as u16;
    // SAFETY: as required of the caller; a systable scan over a locked catalog, closed before
    // return; the keys' functions are oideq and int2eq. The column read holds an expression.
    unsafe {
        let share = pg_sys::AccessShareLock.cast_signed();
        let catalog = pg_sys::table_open(pg_attrdef::RELATION, share);
        let mut keys = [pg_sys::ScanKeyData::default(); 2];
        let functions = [pg_sys::F_OIDEQ, pg_sys::F_INT2EQ].map(pg_sys::Oid::from);
        let (table, column) = (pg_sys::Datum::from(relid), pg_sys::Datum::from(attno));
        pg_sys::ScanKeyInit(
            &mut keys[0],
            pg_attrdef::ADRELID,
            equal,
            functions[0],
            table,
        );
        pg_sys::ScanKeyInit(&mut keys[1], pg_attrdef::ADNUM, equal, functions[1], column);
        let index = pg_attrdef::ADRELID_ADNUM_INDEX;
        let none = core::ptr::null_mut();
        let scan = pg_sys::systable_beginscan(catalog, index, true, none, 2, keys.as_mut_ptr());
        let tuple = pg_sys::systable_getnext(scan);
        let mut is_null = true;
        let found = !tuple.is_null() && {
            let columns = (*catalog).rd_att;
            let text = pg_sys::heap_getattr(tuple, pg_attrdef::ADBIN, columns, &mut is_null);
            !is_null && {
                let text = pg_sys::text_to_cstring(text.cast_mut_ptr());
                nodes::same(pg_sys::stringToNode(text).cast::<Node>(), expected)
            }
        };
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(catalog, share);
        found
    }
}

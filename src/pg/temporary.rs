//! The session's temporary objects.

use pgrx::pg_sys;

/// catalog/pg_depend.h, which pgrx does not bind.
mod pg_depend {
    use pgrx::pg_sys::Oid;

    pub(super) const RELATION: Oid = Oid::from_u32(2608);
    pub(super) const BY_REFERENCE: Oid = Oid::from_u32(2674);
    pub(super) const REFCLASSID: i16 = 4;
    pub(super) const REFOBJID: i16 = 5;

    /// The first columns.
    #[repr(C)]
    pub(super) struct Row {
        pub(super) classid: Oid,
        pub(super) objid: Oid,
    }
}

/// A value that changes when a temporary object comes or goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Objects {
    schema: pg_sys::Oid,
    count: u64,
    sum: u64,
}

impl Objects {
    /// The present ones. Costs next to nothing in a session that never had any.
    pub(super) fn now() -> Self {
        let (mut schema, mut toast) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
        // SAFETY: reads backend-local variables.
        unsafe { pg_sys::GetTempNamespaceState(&mut schema, &mut toast) };
        let mut found = Self {
            schema,
            count: 0,
            sum: 0,
        };
        if schema != pg_sys::InvalidOid {
            found.count_all();
        }
        found
    }

    /// Whatever is in a schema depends on it.
    fn count_all(&mut self) {
        // SAFETY: a systable scan over a locked catalog, closed before return; the keys'
        // function is oideq, of which F_OIDEQ is the OID; a tuple is read while the scan stands
        // on it. What the transaction has made so far is to be seen.
        unsafe {
            pg_sys::CommandCounterIncrement();
            let share = pg_sys::AccessShareLock.cast_signed();
            let catalog = pg_sys::table_open(pg_depend::RELATION, share);
            let mut keys = [pg_sys::ScanKeyData::default(); 2];
            for (key, (column, value)) in keys.iter_mut().zip([
                (pg_depend::REFCLASSID, pg_sys::NamespaceRelationId),
                (pg_depend::REFOBJID, self.schema),
            ]) {
                pg_sys::ScanKeyInit(
                    key,
                    column,
                    pg_sys::BTEqualStrategyNumber as u16,
                    pg_sys::Oid::from(pg_sys::F_OIDEQ),
                    pg_sys::Datum::from(value),
                );
            }
            let index = pg_depend::BY_REFERENCE;
            let none = core::ptr::null_mut();
            let scan = pg_sys::systable_beginscan(catalog, index, true, none, 2, keys.as_mut_ptr());
            loop {
                let tuple = pg_sys::systable_getnext(scan);
                if tuple.is_null() {
                    break;
                }
                let row = &*pg_sys::GETSTRUCT(tuple).cast::<pg_depend::Row>();
                let object = u64::from(row.classid.to_u32()) << 32 | u64::from(row.objid.to_u32());
                self.count += 1;
                self.sum = self
                    .sum
                    .wrapping_add(object.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            }
            pg_sys::systable_endscan(scan);
            pg_sys::table_close(catalog, share);
        }
    }
}

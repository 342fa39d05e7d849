//! The session's temporary objects.

use super::rows::{Catalog, KeyDatum};
use pgrx::pg_sys;

/// A value that changes when a temporary object comes or goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pg) struct Objects {
    schema: pg_sys::Oid,
    count: u64,
    sum: u64,
}

impl Objects {
    /// The present ones. Costs next to nothing in a session that never had any.
    pub(in crate::pg) fn now() -> Self {
        let (mut schema, mut toast) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
        // SAFETY: reads variables that only this process writes.
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
        // SAFETY: what the transaction has made so far is to be seen.
        unsafe { pg_sys::CommandCounterIncrement() };
        let keys = [
            (
                pg_sys::Anum_pg_depend_refclassid as i16,
                KeyDatum::Oid(pg_sys::NamespaceRelationId),
            ),
            (
                pg_sys::Anum_pg_depend_refobjid as i16,
                KeyDatum::Oid(self.schema),
            ),
        ];
        DEPEND.scan(&keys, &mut |row| {
            let object = u64::from(row.classid.to_u32()) << 32 | u64::from(row.objid.to_u32());
            self.count += 1;
            self.sum = self
                .sum
                .wrapping_add(object.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            false
        });
    }
}

// SAFETY: pg_depend and its index by what is referred to.
const DEPEND: Catalog<pg_sys::FormData_pg_depend> = unsafe {
    Catalog::new(
        pg_sys::DependRelationId,
        Some(pg_sys::Oid::from_u32(pg_sys::DependReferenceIndexId)),
    )
};

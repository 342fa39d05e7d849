//! Look-ups in the system catalogs.

use super::externs::raising;
use super::lists;
use pgrx::pg_sys;
use std::ffi::{CStr, CString};

/// What a policy needs to know of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Attribute {
    pub(crate) attno: i16,
    pub(crate) type_oid: pg_sys::Oid,
    pub(crate) typmod: i32,
    pub(crate) not_null: bool,
    pub(crate) has_default: bool,
    pub(crate) generated: bool,
}

/// The column of that name, unless it is dropped or absent.
pub(crate) fn attribute(relid: pg_sys::Oid, name: &str) -> Option<Attribute> {
    let name = CString::new(name).ok()?;
    // SAFETY: SearchSysCacheAttName skips dropped columns; the tuple is read before its release.
    unsafe {
        let tuple = pg_sys::SearchSysCacheAttName(relid, name.as_ptr());
        let form = tuple
            .as_ref()
            .map(|_| pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_attribute>())?;
        let found = Attribute {
            attno: (*form).attnum,
            type_oid: (*form).atttypid,
            typmod: (*form).atttypmod,
            not_null: (*form).attnotnull,
            has_default: (*form).atthasdef,
            generated: (*form).attgenerated != 0,
        };
        pg_sys::ReleaseSysCache(tuple);
        (found.attno > 0).then_some(found)
    }
}

/// What a policy needs to know of a relation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Class {
    pub(crate) relkind: u8,
    pub(crate) is_partition: bool,
    pub(crate) owner: pg_sys::Oid,
    pub(crate) namespace: pg_sys::Oid,
    pub(crate) persistence: u8,
}

/// The relation's row in pg_class, or `None` if it is gone.
pub(crate) fn class(relid: pg_sys::Oid) -> Option<Class> {
    // SAFETY: the tuple is read before its release.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::RELOID as i32;
        let tuple = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(relid));
        let form = tuple
            .as_ref()
            .map(|_| pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_class>())?;
        let found = Class {
            relkind: (*form).relkind.cast_unsigned(),
            is_partition: (*form).relispartition,
            owner: (*form).relowner,
            namespace: (*form).relnamespace,
            persistence: (*form).relpersistence.cast_unsigned(),
        };
        pg_sys::ReleaseSysCache(tuple);
        Some(found)
    }
}

/// Whether the index is a btree.
pub(crate) fn is_btree(index: pg_sys::Oid) -> bool {
    // SAFETY: the tuple is read before its release.
    unsafe {
        let cache = pg_sys::SysCacheIdentifier::RELOID as i32;
        let tuple = pg_sys::SearchSysCache1(cache, pg_sys::Datum::from(index));
        let Some(tuple_ref) = tuple.as_mut() else {
            return false;
        };
        let form = pg_sys::GETSTRUCT(tuple_ref).cast::<pg_sys::FormData_pg_class>();
        let is_btree = (*form).relam == pg_sys::BTREE_AM_OID;
        pg_sys::ReleaseSysCache(tuple);
        is_btree
    }
}

/// The relation's name as a user would write it: qualified and quoted.
pub(crate) fn qualified_name(relid: pg_sys::Oid) -> String {
    // SAFETY: both names are palloc'd copies or null; quoting returns a valid C string.
    unsafe {
        let name = pg_sys::get_rel_name(relid);
        if name.is_null() {
            return relid.to_u32().to_string();
        }
        let schema = pg_sys::get_namespace_name(pg_sys::get_rel_namespace(relid));
        CStr::from_ptr(pg_sys::quote_qualified_identifier(schema, name))
            .to_string_lossy()
            .into_owned()
    }
}

/// The relation's bare name.
pub(crate) fn relation_name(relid: pg_sys::Oid) -> String {
    // SAFETY: get_rel_name returns a palloc'd C string or null.
    unsafe {
        let name = pg_sys::get_rel_name(relid);
        if name.is_null() {
            String::new()
        } else {
            CStr::from_ptr(name).to_string_lossy().into_owned()
        }
    }
}

/// A name as an SQL identifier.
pub(crate) fn quote_identifier(name: &str) -> String {
    let Ok(name) = CString::new(name) else {
        return String::new();
    };
    // SAFETY: a valid C string in, a valid C string out (possibly the same).
    unsafe {
        CStr::from_ptr(pg_sys::quote_identifier(name.as_ptr()))
            .to_string_lossy()
            .into_owned()
    }
}

/// A text as an SQL literal.
pub(crate) fn quote_literal(text: &str) -> String {
    let Ok(text) = CString::new(text) else {
        return String::new();
    };
    // SAFETY: a valid C string in, a palloc'd one out.
    unsafe {
        CStr::from_ptr(pg_sys::quote_literal_cstr(text.as_ptr()))
            .to_string_lossy()
            .into_owned()
    }
}

/// The relation and all that inherit from it, partitions included, at any depth.
pub(crate) fn all_inheritors(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let no_lock = pg_sys::NoLock.cast_signed();
    // SAFETY: the list is copied before it is left to the memory context.
    unsafe {
        let list = pg_sys::ffi::pg_guard_ffi_boundary(|| {
            raising::find_all_inheritors(relid, no_lock, core::ptr::null_mut())
        });
        lists::oids(list).collect()
    }
}

/// Whether the relation has partitions or heirs, or once had.
pub(crate) fn has_subclass(relid: pg_sys::Oid) -> bool {
    // SAFETY: a syscache look-up within a transaction; the relation exists.
    unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| raising::has_subclass(relid)) }
}

/// All relations that the relation inherits from, at any distance.
pub(crate) fn ancestors(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let Some(class) = class(relid) else {
        return vec![];
    };
    parents(relid, class.is_partition)
        .into_iter()
        .flat_map(|parent| std::iter::once(parent).chain(ancestors(parent)))
        .collect()
}

/// The direct parents: the one of a partition, those of an inheriting table in
/// the order of its INHERITS clause.
pub(crate) fn parents(relid: pg_sys::Oid, is_partition: bool) -> Vec<pg_sys::Oid> {
    if is_partition {
        // SAFETY: the relation is a partition; a detached one yields InvalidOid.
        let parent = unsafe {
            pg_sys::ffi::pg_guard_ffi_boundary(|| raising::get_partition_parent(relid, true))
        };
        return if parent == pg_sys::InvalidOid {
            vec![]
        } else {
            vec![parent]
        };
    }
    inherits_parents(relid)
}

/// The default partition of a partitioned table.
pub(crate) fn default_partition(relid: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // SAFETY: a syscache look-up within a transaction.
    let default =
        unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| raising::get_default_partition_oid(relid)) };
    (default != pg_sys::InvalidOid).then_some(default)
}

/// catalog/pg_inherits.h, which pgrx does not bind.
mod pg_inherits {
    use pgrx::pg_sys::Oid;

    pub(super) const RELATION: Oid = Oid::from_u32(2611);
    pub(super) const RELID_SEQNO_INDEX: Oid = Oid::from_u32(2680);
    pub(super) const INHRELID: i16 = 1;

    #[repr(C)]
    pub(super) struct Row {
        pub(super) inhrelid: Oid,
        pub(super) inhparent: Oid,
        pub(super) inhseqno: i32,
        pub(super) inhdetachpending: bool,
    }
}

/// Reads pg_inherits, whose index (inhrelid, inhseqno) gives the order.
fn inherits_parents(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let mut parents = Vec::new();
    // SAFETY: a systable scan over a locked catalog, closed before return; the
    // key's function is oideq, of which F_OIDEQ is the OID.
    unsafe {
        let access_share = pg_sys::AccessShareLock.cast_signed();
        let rel = pg_sys::table_open(pg_inherits::RELATION, access_share);
        let mut key = pg_sys::ScanKeyData::default();
        pg_sys::ScanKeyInit(
            &mut key,
            pg_inherits::INHRELID,
            pg_sys::BTEqualStrategyNumber as u16,
            pg_sys::Oid::from(pg_sys::F_OIDEQ),
            pg_sys::Datum::from(relid),
        );
        let index = pg_inherits::RELID_SEQNO_INDEX;
        let scan = pg_sys::systable_beginscan(rel, index, true, core::ptr::null_mut(), 1, &mut key);
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            parents.push((*pg_sys::GETSTRUCT(tuple).cast::<pg_inherits::Row>()).inhparent);
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(rel, access_share);
    }
    parents
}

/// The columns that COPY writes when none are named: neither dropped nor
/// generated, in order. The caller holds a lock on the relation.
pub(crate) fn copied_columns(relid: pg_sys::Oid) -> Vec<String> {
    let no_lock = pg_sys::NoLock.cast_signed();
    let mut names = Vec::new();
    // SAFETY: the relation stays open while its attributes are read; syscache tuples are released.
    unsafe {
        let relation = pg_sys::relation_open(relid, no_lock);
        let count = (*(*relation).rd_att).natts as i16;
        pg_sys::relation_close(relation, no_lock);
        for attno in 1..=count {
            let name = pg_sys::get_attname(relid, attno, true);
            if name.is_null() || pg_sys::get_attgenerated(relid, attno) != 0 {
                continue;
            }
            let name = CStr::from_ptr(name).to_string_lossy().into_owned();
            if attribute(relid, &name).is_some() {
                names.push(name);
            }
        }
    }
    names
}

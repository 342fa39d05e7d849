//! What the catalogs of TimescaleDB, where it is installed, say of a relation. By name, without its
//! symbols: without it this costs one look-up in the syscache.

use super::rows::{Catalog, KeyDatum};
use super::{names, roles};
use crate::pg::catalog;
use core::ffi::CStr;
use pgrx::pg_sys;

const SCHEMA: &CStr = c"_timescaledb_catalog";

/// The first column of its compression_settings.
#[repr(C)]
struct FormSettings {
    relid: pg_sys::Oid,
}

/// The first columns of its hypertable.
#[repr(C)]
struct FormHypertable {
    id: i32,
    schema_name: pg_sys::NameData,
    table_name: pg_sys::NameData,
}

/// Its catalog of that name, which begins with these columns. Any user who may create a schema can make one
/// that looks like it, but not one of a superuser's.
fn find(name: &str, columns: &[(&str, pg_sys::Oid)]) -> Option<pg_sys::Oid> {
    let relid = names::relation(names::schema(SCHEMA)?, name)?;
    let class = catalog::class(relid)?;
    let begins = columns.iter().zip(1..).all(|(&(name, type_oid), attno)| {
        catalog::attribute(relid, name).is_some_and(|column| {
            column.attno == attno && column.type_oid == type_oid && column.not_null
        })
    });
    let is_table = class.relkind == pg_sys::RELKIND_RELATION;
    (is_table && roles::is_superuser(class.owner) && begins).then_some(relid)
}

/// Whether the hypertable, or chunk, has a columnstore: rows that no index and no scan of its own
/// storage finds.
pub(crate) fn has_columnstore(relid: pg_sys::Oid) -> bool {
    let columns = [("relid", pg_sys::REGCLASSOID)];
    let Some(settings) = find("compression_settings", &columns) else {
        return false;
    };
    // SAFETY: it begins with this column, which is never NULL; without an index.
    let settings: Catalog<FormSettings> = unsafe { Catalog::new(settings, None) };
    let mut found = false;
    settings.scan(&[(1, KeyDatum::Oid(relid))], &mut |row| {
        found = row.relid == relid;
        found
    });
    found
}

/// Whether the table is a hypertable. Its children are chunks, each of which is made by the INSERT of
/// its first row.
pub(crate) fn is_hypertable(relid: pg_sys::Oid) -> bool {
    let columns = [
        ("id", pg_sys::INT4OID),
        ("schema_name", pg_sys::NAMEOID),
        ("table_name", pg_sys::NAMEOID),
    ];
    let Some(hypertables) = find("hypertable", &columns) else {
        return false;
    };
    let schema = |row: &FormHypertable| names::schema(text(&row.schema_name));
    let namespace = catalog::class(relid).map(|class| class.namespace);
    let name = catalog::relation_name(relid);
    // SAFETY: as above.
    let hypertables: Catalog<FormHypertable> = unsafe { Catalog::new(hypertables, None) };
    let mut found = false;
    hypertables.scan(&[], &mut |row| {
        found = crate::pg::abi::encoding::from_server(text(&row.table_name)) == name
            && schema(row) == namespace
            && row.id > 0;
        found
    });
    found
}

fn text(name: &pg_sys::NameData) -> &CStr {
    // SAFETY: PostgreSQL ends every value of type name with a zero byte.
    unsafe { CStr::from_ptr(name.data.as_ptr()) }
}

//! What the catalogs of TimescaleDB, where it is installed, say of a relation. By name, without its
//! symbols: without it this costs one look-up in the syscache.

use super::rows::{Catalog, KeyDatum};
use super::{names, roles};
use crate::pg::abi::encoding;
use crate::pg::catalog;
use core::ffi::CStr;
use pgrx::pg_sys;

const SCHEMA: &CStr = c"_timescaledb_catalog";

/// Its catalog of that name, which begins with these columns. Any user who may create a schema can make one
/// that looks like it, but not one of a superuser's.
fn find(name: &str, columns: &[(&str, pg_sys::Oid)]) -> Option<Catalog<()>> {
    let relid = names::relation(names::schema(SCHEMA)?, name)?;
    let class = catalog::class(relid)?;
    let begins = columns.iter().zip(1..).all(|(&(name, type_oid), attno)| {
        catalog::attribute(relid, name)
            .is_some_and(|column| column.attno == attno && column.type_oid == type_oid)
    });
    // SAFETY: nothing is read of its rows; without an index.
    (class.has_rows() && roles::is_superuser(class.owner) && begins)
        .then(|| unsafe { Catalog::new(relid, None) })
}

/// Whether there is a row whose columns have these values.
fn has_row(rows: &Catalog<()>, keys: &[(i16, KeyDatum<'_>)]) -> bool {
    rows.find(keys, |_| Some(())).is_some()
}

/// Whether the hypertable, or chunk, has a columnstore: rows that no index and no scan of its own
/// storage finds.
pub(crate) fn has_columnstore(relid: pg_sys::Oid) -> bool {
    let settings = find("compression_settings", &[("relid", pg_sys::REGCLASSOID)]);
    settings.is_some_and(|settings| has_row(&settings, &[(1, KeyDatum::Oid(relid))]))
}

/// Whether the table is a hypertable. Its children are chunks, each of which is made by the INSERT of
/// its first row.
pub(crate) fn is_hypertable(relid: pg_sys::Oid) -> bool {
    let columns = [
        ("id", pg_sys::INT4OID),
        ("schema_name", pg_sys::NAMEOID),
        ("table_name", pg_sys::NAMEOID),
    ];
    let named = || {
        let class = catalog::class(relid)?;
        let schema = encoding::to_server(&names::of_schema(class.namespace))?;
        Some((schema, encoding::to_server(&catalog::relation_name(relid))?))
    };
    find("hypertable", &columns)
        .zip(named())
        .is_some_and(|(hypertables, (schema, name))| {
            let keys = [(2, KeyDatum::Name(&schema)), (3, KeyDatum::Name(&name))];
            has_row(&hypertables, &keys)
        })
}

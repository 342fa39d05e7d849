//! Unique keys of an archive: a key that has been archived comes again, when a new row has taken it and
//! has expired, too (W7).

use crate::error::{Error, Result};
use crate::pg::abi::encoding;
use crate::pg::abi::values::Text;
use crate::pg::catalog::{self, qualified_name, quote_identifier};
use crate::pg::session;
use crate::policy::Policy;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// A unique index of the archive, or that of an exclusion constraint.
struct ArchiveKey {
    index: pg_sys::Oid,
    is_constraint: bool,
    columns: Vec<String>,
}

/// Says which key of the archive keeps a second row of the same key on disk.
pub(in crate::api) fn tell(
    relid: pg_sys::Oid,
    policy: &Policy,
    archive: pg_sys::Oid,
) -> Result<()> {
    let archived = catalog::copied_columns(relid);
    // Two rows of one key are never written at the same time; what only the archive has, it fills itself.
    let differs =
        |column: &String| policy.ts_column.as_ref() == Some(column) || !archived.contains(column);
    let keys = session::with_safe_search_path(|| keys_of(archive))?;
    let mut keys = keys.into_iter();
    let Some(key) = keys.find(|key| !key.columns.iter().any(differs)) else {
        return Ok(());
    };
    let (table, archive) = (qualified_name(relid), qualified_name(archive));
    let name = quote_identifier(&catalog::relation_name(key.index));
    let drop = match key.is_constraint {
        true => format!("ALTER TABLE {archive} DROP CONSTRAINT {name};"),
        false => format!("DROP INDEX {};", qualified_name(key.index)),
    };
    let message =
        format!("an expired row of table {table} stays on disk if {archive} has its key already");
    Error::for_notice(message)
        .detail(format!(
            "A key of {table} can be used again once its row has expired, and {name} allows it only once in the archive. Such a row is counted in \"blocked_rows\" of ttl.stats."
        ))
        .hint(format!("To archive every row, run: {drop}"))
        .notice();
    Ok(())
}

fn keys_of(archive: pg_sys::Oid) -> Result<Vec<ArchiveKey>> {
    let query = format!(
        "SELECT i.indexrelid, k.oid IS NOT NULL, a.attname::pg_catalog.text \
           FROM pg_catalog.pg_index AS i \
           LEFT JOIN pg_catalog.pg_constraint AS k ON k.conindid OPERATOR(pg_catalog.=) i.indexrelid \
            AND k.conrelid OPERATOR(pg_catalog.=) i.indrelid \
           LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid OPERATOR(pg_catalog.=) i.indrelid \
            AND a.attnum OPERATOR(pg_catalog.=) ANY (i.indkey[0:i.indnkeyatts - 1]) AND a.attnum OPERATOR(pg_catalog.>) 0 \
          WHERE i.indrelid OPERATOR(pg_catalog.=) {}::pg_catalog.oid AND (i.indisunique OR i.indisexclusion) \
          ORDER BY i.indexrelid",
        archive.to_u32()
    );
    let rows = Spi::connect(|client| {
        client
            .select(&encoding::query(&query), None, &[])?
            .map(|row| {
                let index = row.get::<pg_sys::Oid>(1)?;
                Ok((index, row.get::<bool>(2)?, row.get::<Text>(3)?))
            })
            .collect::<core::result::Result<Vec<_>, pgrx::spi::Error>>()
    })?;
    let mut keys: Vec<ArchiveKey> = Vec::new();
    for (index, is_constraint, column) in rows {
        let Some(index) = index else {
            continue;
        };
        if keys.last().is_none_or(|key| key.index != index) {
            keys.push(ArchiveKey {
                index,
                is_constraint: is_constraint.unwrap_or(false),
                columns: vec![],
            });
        }
        if let (Some(key), Some(column)) = (keys.last_mut(), column) {
            key.columns.push(column.0);
        }
    }
    Ok(keys)
}

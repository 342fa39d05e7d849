//! Unique keys of an archive: a key that has been archived comes again, when a new row has taken it and
//! has expired, too (W7).

use crate::error::{Error, Result};
use crate::pg::abi::values;
use crate::pg::catalog::{self, qualified_name, quote_identifier, quote_literal};
use crate::policy::Policy;
use pgrx::pg_sys;

/// Says which key of the archive keeps a second row of the same key on disk.
pub(in crate::api) fn tell(
    relid: pg_sys::Oid,
    policy: &Policy,
    archive: pg_sys::Oid,
) -> Result<()> {
    let Some((key, is_constraint)) = key_that_repeats(relid, policy, archive)? else {
        return Ok(());
    };
    let (table, archive) = (qualified_name(relid), qualified_name(archive));
    let name = quote_identifier(&catalog::relation_name(key));
    let drop = match is_constraint {
        true => format!("ALTER TABLE {archive} DROP CONSTRAINT {name};"),
        false => format!("DROP INDEX {};", qualified_name(key)),
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

/// A unique index of the archive, or that of an exclusion constraint, and whether a constraint has it: one whose columns all
/// come from the table, but for the time of the last modification. Two rows of one key are never written at the same time, and
/// the archive fills what only it has.
fn key_that_repeats(
    relid: pg_sys::Oid,
    policy: &Policy,
    archive: pg_sys::Oid,
) -> Result<Option<(pg_sys::Oid, bool)>> {
    let archived = catalog::copied_columns(relid);
    let repeats: Vec<String> = archived
        .filter(|column| policy.ts_column.as_ref() != Some(column))
        .map(|column| quote_literal(&column))
        .collect();
    let query = format!(
        "SELECT i.indexrelid::pg_catalog.int8::pg_catalog.text, (k.oid IS NOT NULL)::pg_catalog.text \
           FROM pg_catalog.pg_index AS i \
           LEFT JOIN pg_catalog.pg_constraint AS k ON k.conindid OPERATOR(pg_catalog.=) i.indexrelid \
            AND k.conrelid OPERATOR(pg_catalog.=) i.indrelid AND k.contype OPERATOR(pg_catalog.<>) 'f' \
          WHERE i.indrelid OPERATOR(pg_catalog.=) {}::pg_catalog.oid AND (i.indisunique OR i.indisexclusion) \
            AND NOT EXISTS (SELECT FROM pg_catalog.unnest(i.indkey) WITH ORDINALITY AS c (attnum, position) \
                              JOIN pg_catalog.pg_attribute AS a ON a.attrelid OPERATOR(pg_catalog.=) i.indrelid \
                               AND a.attnum OPERATOR(pg_catalog.=) c.attnum \
                             WHERE c.position OPERATOR(pg_catalog.<=) i.indnkeyatts \
                               AND a.attname OPERATOR(pg_catalog.<>) ALL (ARRAY[{}]::pg_catalog.name[])) \
          ORDER BY i.indexrelid LIMIT 1",
        archive.to_u32(),
        repeats.join(", ")
    );
    let found = values::texts::<2>(&query)?.into_iter().next();
    Ok(found.and_then(|[key, is_constraint]| {
        let key = pg_sys::Oid::from(key.parse::<u32>().ok()?);
        Some((key, is_constraint == "true"))
    }))
}

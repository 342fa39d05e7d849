//! `ttl.disable`.

use super::guard;
use crate::error::{Result, TtlError, or_raise};
use crate::pg::catalog::{self, qualified_name, quote_identifier};
use crate::pg::{index, seclabel};
use crate::store::{cache, expected_indexes};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// `ttl.disable(rel, drop_columns)` (C9): no row expires any more. The columns
/// stay and rows go on being stamped, so that turning TTL on again counts from
/// the last modification (C4); `drop_columns` removes all of it.
#[pg_extern(sql = false)]
fn disable(rel: pg_sys::Oid, drop_columns: bool) {
    guard::check_writable(c"ttl.disable()");
    or_raise(turn_off(rel, drop_columns));
}

fn turn_off(relid: pg_sys::Oid, drop_columns: bool) -> Result<()> {
    guard::check_owner(relid)?;
    guard::lock(
        relid,
        if drop_columns {
            pg_sys::AccessExclusiveLock
        } else {
            pg_sys::ShareUpdateExclusiveLock
        },
    );
    let Some(mut policy) = guard::own_policy(relid)? else {
        return Err(TtlError::no_policy(&qualified_name(relid)));
    };
    if !drop_columns {
        policy.default_ttl = None;
        seclabel::set(relid, Some(&policy.to_label()));
        return Ok(());
    }
    let indexes = cache::policy(relid).map_or_else(Vec::new, |columns| {
        let find = |wanted| index::find(relid, wanted, &columns.ts, columns.ttl.as_ref());
        expected_indexes(&columns)
            .into_iter()
            .flat_map(find)
            .collect()
    });
    seclabel::set(relid, None);
    // Those that serve nothing else; an index with more columns goes with its column.
    for index in indexes {
        if catalog::class(index).is_some() {
            Spi::run(&format!("DROP INDEX {}", qualified_name(index)))?;
        }
    }
    // The generated column first: it depends on the document's.
    for column in policy.ttl_column.iter().chain([&policy.ts_column]) {
        let (table, column) = (qualified_name(relid), quote_identifier(column));
        Spi::run(&format!(
            "ALTER TABLE {table} DROP COLUMN IF EXISTS {column}"
        ))?;
    }
    Ok(())
}

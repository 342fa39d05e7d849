//! `ttl.purge`.

use super::guard;
use crate::error::{Result, TtlError, or_raise};
use crate::pg::catalog::{self, qualified_name, quote_identifier};
use crate::pg::roles;
use crate::policy::Policy;
use crate::store::{Inherited, cache, governing_label};
use crate::visibility::statement;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// `ttl.purge(rel) RETURNS bigint`: deletes what is expired, in this transaction.
#[pg_extern(sql = false)]
fn purge(rel: pg_sys::Oid) -> i64 {
    guard::check_writable(c"ttl.purge()");
    or_raise(delete_expired(rel))
}

fn delete_expired(relid: pg_sys::Oid) -> Result<i64> {
    guard::check_owner(relid)?;
    guard::lock(relid, pg_sys::RowExclusiveLock);
    if governing_label(relid).is_none() {
        return Err(TtlError::no_policy(relid));
    }
    // Partitions follow the partitioned table; an heir may have another parent
    // that rules it, so each goes by the policy that is in force for itself.
    let is_partitioned = catalog::class(relid)
        .is_some_and(|class| class.relkind == pg_sys::RELKIND_PARTITIONED_TABLE);
    if is_partitioned {
        return delete_from(relid, "");
    }
    let mut deleted = 0;
    for heir in catalog::all_inheritors(relid) {
        guard::lock(heir, pg_sys::RowExclusiveLock);
        if catalog::class(heir).is_some() {
            deleted += delete_from(heir, "ONLY ")?;
        }
    }
    Ok(deleted)
}

fn delete_from(relid: pg_sys::Oid, only: &str) -> Result<i64> {
    let Some(Inherited { policy, .. }) = governing_label(relid) else {
        return Ok(0);
    };
    if !cache::policy(relid).is_some_and(|policy| policy.hides()) {
        return Ok(0);
    }
    let owner = catalog::class(relid).map_or(pg_sys::InvalidOid, |class| class.owner);
    let query = format!(
        "DELETE FROM {only}{} WHERE NOT {}",
        qualified_name(relid),
        live(&policy, policy.default_ttl)
    );
    // Triggers of the table run as its owner, whoever of the owning role asked.
    let deleted = roles::as_role(owner, || {
        statement::with_expired_rows_of(relid, || {
            Spi::connect_mut(|client| client.update(&query, None, &[]).map(|result| result.len()))
        })
    })?;
    Ok(i64::try_from(deleted).unwrap_or(i64::MAX))
}

/// The condition "the row is live" in SQL.
pub(super) fn live(policy: &Policy, default_ttl: Option<i32>) -> String {
    let default = default_ttl.map_or("NULL".to_owned(), |seconds| seconds.to_string());
    let ts = quote_identifier(&policy.ts_column);
    match &policy.ttl_column {
        Some(ttl) => format!("ttl.live({ts}, {}, {default})", quote_identifier(ttl)),
        None => format!("ttl.live({ts}, {default})"),
    }
}

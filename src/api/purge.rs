//! `ttl.purge`.

use super::guard;
use crate::error::{Result, TtlError, or_raise};
use crate::pg::{catalog, roles};
use crate::reaper;
use crate::store::governing_label;
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
    // Each goes by the policy that is in force for itself: an heir may have
    // another parent that rules it.
    let mut deleted = 0;
    for heir in catalog::all_inheritors(relid) {
        guard::lock(heir, pg_sys::RowExclusiveLock);
        deleted += delete_from(heir)?;
    }
    Ok(deleted)
}

fn delete_from(relid: pg_sys::Oid) -> Result<i64> {
    let Some(class) = catalog::class(relid) else {
        return Ok(0);
    };
    if class.relkind != pg_sys::RELKIND_RELATION {
        return Ok(0);
    }
    // Triggers of the table run as its owner, whoever of the owning role asked.
    let purged = roles::as_role(class.owner, || reaper::delete_all(relid))
        .map_err(|failure| TtlError::new(failure.code, failure.message))?;
    Ok(i64::try_from(purged.rows).unwrap_or(i64::MAX))
}

//! `ttl.resume`.

use super::guard;
use crate::error::{Result, TtlError, or_raise};
use crate::pg::seclabel;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// `ttl.resume(rel)`: background deletion may begin on a table whose policy was
/// restored from a dump, or labelled by hand (docs/decisions/0010-restore-guard.md).
/// Does nothing where it may already.
#[pg_extern(sql = false)]
fn resume(rel: pg_sys::Oid) {
    guard::check_writable(c"ttl.resume()");
    or_raise(lift_guard(rel));
}

fn lift_guard(relid: pg_sys::Oid) -> Result<()> {
    guard::check_owner(relid)?;
    guard::lock(relid, pg_sys::ShareUpdateExclusiveLock);
    let Some(mut policy) = guard::own_policy(relid)? else {
        return Err(TtlError::no_policy(relid));
    };
    if policy.is_restored(relid.to_u32()) {
        policy.table_oid = Some(relid.to_u32());
        seclabel::set(relid, Some(&policy.to_label()));
    }
    Ok(())
}

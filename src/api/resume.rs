//! `ttl.resume`.

use super::guard;
use crate::error::{Result, TtlError, or_raise};
use crate::pg::seclabel;
use crate::reclaim::attach;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// `ttl.resume(rel)`: background deletion may begin on a table whose policy was
/// restored from a dump, or labelled by hand (docs/decisions/0010-restore-guard.md),
/// and the keys of expired rows are free, if the dump had no trigger for that.
/// Does nothing where it may already.
#[pg_extern(sql = false)]
fn resume(rel: pg_sys::Oid) {
    guard::check_writable(c"ttl.resume()");
    or_raise(lift_guard(rel));
}

fn lift_guard(relid: pg_sys::Oid) -> Result<()> {
    guard::check_owner(relid)?;
    guard::lock(
        relid,
        if attach::will_be_created(relid) {
            pg_sys::ShareRowExclusiveLock
        } else {
            pg_sys::ShareUpdateExclusiveLock
        },
    );
    let Some(mut policy) = guard::own_policy(relid)? else {
        return Err(TtlError::no_policy(relid));
    };
    if policy.is_restored(relid.to_u32()) {
        policy.table_oid = Some(relid.to_u32());
        seclabel::set(relid, Some(&policy.to_label()));
    }
    attach::follow(relid);
    Ok(())
}

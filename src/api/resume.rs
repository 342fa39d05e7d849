//! `ttl.resume`.

use super::{archive, guard};
use crate::error::{Error, Result};
use crate::keys::trigger_placement;
use crate::pg::report::or_raise;
use crate::policy::{IndexRule, Policy};
use crate::store::{index_of, seclabel};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// `ttl.resume(rel)`: lets background deletion start on a table whose policy was restored from a
/// dump or labelled by hand (docs/decisions/0010-restore-guard.md), and adds the trigger that frees
/// keys if the dump had none; and ends a pause (C29). Does nothing if deletion may run already.
#[pg_extern(sql = false)]
fn resume(rel: pg_sys::Oid) {
    guard::check_writable(c"ttl.resume()");
    or_raise(lift_guard(rel));
}

/// The restore is complete, so indexes that are still missing are forgotten: an index that later
/// gets such a name is not a TTL index.
fn forget_missing_indexes(relid: pg_sys::Oid, policy: &mut Policy) -> Vec<String> {
    let is_there = |rule: &IndexRule| index_of(relid, &rule.index).is_some();
    let (kept, missing): (Vec<_>, Vec<_>) = policy.rules.drain(..).partition(is_there);
    policy.rules = kept;
    missing.into_iter().map(|rule| rule.index).collect()
}

fn lift_guard(relid: pg_sys::Oid) -> Result<()> {
    guard::check_changeable(relid)?;
    guard::lock(
        relid,
        if trigger_placement::will_be_created(relid) {
            pg_sys::ShareRowExclusiveLock
        } else {
            pg_sys::ShareUpdateExclusiveLock
        },
    );
    let Some(mut policy) = guard::own_policy(relid)? else {
        return Err(Error::no_policy(relid));
    };
    // C29: it ends a pause, too.
    let was_paused = policy.paused_until.take().is_some();
    if policy.is_restored(relid.to_u32()) {
        archive::bind(relid, &mut policy)?;
        policy.table_oid = Some(relid.to_u32());
        let missing = forget_missing_indexes(relid, &mut policy);
        let label = (!policy.is_empty()).then(|| policy.to_label());
        seclabel::set(relid, label.as_deref());
        if !missing.is_empty() {
            Error::no_longer_ttl_indexes(relid, &missing).notice();
        }
    } else if was_paused {
        seclabel::set(relid, Some(&policy.to_label()));
    }
    trigger_placement::sync(relid);
    Ok(())
}

//! `ttl.disable`.

use super::{cluster, guard, live_view, remove_added, write_label};
use crate::ddl::purge_before_change;
use crate::error::{Error, Result};
use crate::keys::trigger_placement;
use crate::pg::abi::report::or_raise;
use crate::pg::session;
use crate::store::succession;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// What `ttl.disable` removes beyond turning TTL off.
#[derive(Clone, Copy)]
pub(in crate::api) enum Removal {
    /// Nothing: TTL can be turned on again (C4).
    Nothing,
    /// The policy, and what `ttl.enable` added to the table.
    Added,
    /// And its columns that already existed.
    AllColumns,
}

/// `ttl.disable(rel, drop_columns, revive_expired, drop_adopted_columns)` (C9): no row expires any
/// more. Expired rows are deleted first, unless `revive_expired` is true. TTL indexes become
/// ordinary indexes. Without `drop_columns` the columns stay and writes still set the time column,
/// so that turning TTL on again counts from the last modification (C4). `drop_columns` removes what
/// `ttl.enable` added; `drop_adopted_columns` also the columns that already existed.
#[pg_extern(sql = false)]
fn disable(
    rel: Option<pg_sys::Oid>,
    drop_columns: Option<bool>,
    revive_expired: Option<bool>,
    drop_adopted_columns: Option<bool>,
) {
    guard::check_writable(c"ttl.disable()");
    let arguments = || {
        let relid = guard::required(rel, "rel")?;
        let revive_expired = guard::required(revive_expired, "revive_expired")?;
        let drop_columns = guard::required(drop_columns, "drop_columns")?;
        let adopted = guard::required(drop_adopted_columns, "drop_adopted_columns")?;
        Ok((relid, removal(drop_columns, adopted)?, revive_expired))
    };
    or_raise(
        arguments()
            .and_then(|(relid, removal, revive_expired)| turn_off(relid, removal, revive_expired)),
    );
}

fn removal(drop_columns: bool, adopted: bool) -> Result<Removal> {
    match (drop_columns, adopted) {
        (false, false) => Ok(Removal::Nothing),
        (true, false) => Ok(Removal::Added),
        (true, true) => Ok(Removal::AllColumns),
        (false, true) => Err(Error::invalid(
            "\"drop_adopted_columns\" cannot be given without \"drop_columns\"",
        )
        .detail("Columns that were there before ttl.enable() are dropped only together with those that it added.")
        .hint("Leave it out to keep all columns, with their values.")),
    }
}

pub(in crate::api) fn turn_off(
    relid: pg_sys::Oid,
    removal: Removal,
    revive_expired: bool,
) -> Result<()> {
    guard::check_change(relid)?;
    let (lock, children_lock) = match removal {
        Removal::Nothing => (pg_sys::ShareUpdateExclusiveLock, pg_sys::RowExclusiveLock),
        _ => (pg_sys::AccessExclusiveLock, pg_sys::AccessExclusiveLock),
    };
    if !matches!(removal, Removal::Nothing) {
        cluster::check_node(relid, "ttl.disable() with drop_columns")?;
    }
    guard::lock(relid, lock);
    let policy = guard::present_policy(relid)?;
    if !revive_expired {
        purge_before_change::prevent(relid, None, children_lock)?;
    }
    write_label::tell_of_rules(relid, &policy);
    let adopted_too = match removal {
        Removal::Nothing => {
            write_label::write(relid, &policy.turned_off());
            trigger_placement::sync(relid);
            return Ok(());
        }
        Removal::Added => false,
        Removal::AllColumns => true,
    };
    session::with_safe_search_path(|| live_view::remove(relid, &policy, adopted_too))?;
    succession::set(relid, None);
    trigger_placement::sync(relid);
    session::with_safe_search_path(|| remove_added::remove(relid, &policy, adopted_too))
}

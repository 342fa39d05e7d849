//! `ttl.disable`.

use super::{guard, label};
use crate::error::{Result, TtlError, or_raise};
use crate::pg::catalog::{qualified_name, quote_identifier};
use crate::pg::{seclabel, session};
use crate::policy::Policy;
use crate::reclaim::{attach, revival};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// `ttl.disable(rel, drop_columns, revive_expired)` (C9): no row expires any more.
/// What is expired is deleted first, unless it is to live again. TTL indexes become
/// ordinary ones. The columns stay and rows go on being stamped, so that turning TTL on again counts from
/// the last modification (C4); `drop_columns` removes all of it.
#[pg_extern(sql = false)]
fn disable(rel: pg_sys::Oid, drop_columns: bool, revive_expired: bool) {
    guard::check_writable(c"ttl.disable()");
    or_raise(turn_off(rel, drop_columns, revive_expired));
}

fn turn_off(relid: pg_sys::Oid, drop_columns: bool, revive_expired: bool) -> Result<()> {
    guard::check_owner(relid)?;
    let (lock, heirs_lock) = if drop_columns {
        (pg_sys::AccessExclusiveLock, pg_sys::AccessExclusiveLock)
    } else {
        (pg_sys::ShareUpdateExclusiveLock, pg_sys::RowExclusiveLock)
    };
    guard::lock(relid, lock);
    let Some(policy) = guard::own_policy(relid)? else {
        return Err(TtlError::no_policy(relid));
    };
    if !revive_expired {
        revival::prevent(relid, None, heirs_lock)?;
    }
    label::tell_of_rules(relid, &policy);
    if !drop_columns {
        label::write(relid, &policy.turned_off());
        attach::follow(relid);
        return Ok(());
    }
    seclabel::set(relid, None);
    attach::follow(relid);
    session::with_safe_search_path(|| drop_columns_of(relid, &policy))
}

fn drop_columns_of(relid: pg_sys::Oid, policy: &Policy) -> Result<()> {
    // Indexes and constraints go with their columns.
    // The generated column first: it depends on the document's.
    for column in policy.ttl_column.iter().chain(&policy.ts_column) {
        let (table, column) = (qualified_name(relid), quote_identifier(column));
        Spi::run(&format!(
            "ALTER TABLE {table} DROP COLUMN IF EXISTS {column}"
        ))?;
    }
    Ok(())
}

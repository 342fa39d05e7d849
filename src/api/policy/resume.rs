//! `ttl.resume` and `ttl.resume_restored`.

use super::{archive_to, guard, write_label};
use crate::error::{Error, Result};
use crate::keys::trigger_placement;
use crate::pg::abi::report::or_raise;
use crate::pg::catalog::{self, roles};
use crate::policy::{IndexRule, Policy};
use crate::store::cache::labelled_table;
use crate::store::{index_of, labels, policy_lock, seclabel};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// `ttl.resume(rel)`: lets background deletion start on a table whose policy was restored from a
/// dump or labelled by hand (docs/decisions/0070-what-waits.md), and adds the trigger that frees
/// keys if the dump had none; and ends a pause (C29). Does nothing if deletion may run already.
#[pg_extern(sql = false)]
fn resume(rel: Option<pg_sys::Oid>) {
    guard::check_writable(c"ttl.resume()");
    or_raise(guard::required(rel, "rel").and_then(|relid| lift_guard(relid, true)));
}

/// `ttl.resume_restored() RETURNS SETOF regclass`: as `ttl.resume` for each table that waits because of
/// a restore, of those that the caller may act for. A pause goes on. For a table that cannot be resumed, or
/// that waits since it came from another owner, a WARNING is raised, and it goes on waiting.
#[pg_extern(sql = false)]
fn resume_restored() -> SetOfIterator<'static, pg_sys::Oid> {
    guard::check_writable(c"ttl.resume_restored()");
    let user = roles::current_user();
    let is_meant = |relid: pg_sys::Oid, policy: &Policy| {
        policy.restored && labelled_table(relid) == Some(relid) && roles::owns_relation(relid, user)
    };
    let mut tables: Vec<pg_sys::Oid> = vec![];
    for (relid, policy) in labels() {
        if !is_meant(relid, &policy) {
            continue;
        }
        if policy.handed_over {
            not_resumed(relid, &handed_over()).warn();
        } else {
            tables.push(relid);
        }
    }
    // Everybody locks them in the same order.
    tables.sort_unstable_by_key(|relid| relid.to_u32());
    tables.retain(|&relid| match lift_guard(relid, false) {
        Ok(lifted) => lifted,
        Err(failure) => {
            not_resumed(relid, &failure).warn();
            false
        }
    });
    SetOfIterator::new(tables)
}

/// Why a table is not resumed together with others.
fn handed_over() -> Error {
    let reason = "it, or a table that its deletion reaches, has belonged to another owner, whose triggers and expressions would run";
    Error::not_ready(reason)
}

fn not_resumed(relid: pg_sys::Oid, failure: &Error) -> Error {
    let table = catalog::qualified_name(relid);
    let message = format!("expired rows of table {table} are not deleted");
    let call = catalog::quote_literal(&table);
    Error::for_warning(message)
        .detail(format!("It still waits: {}.", failure.text()))
        .hint(format!(
            "Remedy that, then SELECT ttl.resume({call}) starts deletion."
        ))
}

/// 55000: a TTL index is not there, as before pg_restore's section post-data. Without it the rule would be lost.
fn check_indexes(relid: pg_sys::Oid, policy: &Policy) -> Result<()> {
    let is_missing = |rule: &&IndexRule| index_of(relid, &rule.index).is_none();
    let Some(missing) = policy.rules.iter().find(is_missing) else {
        return Ok(());
    };
    let (table, index) = (
        catalog::qualified_name(relid),
        catalog::quote_identifier(&missing.index),
    );
    Err(Error::not_ready(format!("TTL index {index} of table {table} does not exist"))
    .detail("Rows expire by it, and pg_restore may not have created it yet.")
    .hint(format!(
        "Complete the restore, or create the index. To do without a time to live, run: SELECT ttl.disable({});",
        catalog::quote_literal(&table)
    )))
}

/// Returns whether the table has waited because of a restore.
fn lift_guard(relid: pg_sys::Oid, ends_pause: bool) -> Result<bool> {
    guard::check_changeable(relid)?;
    guard::lock(relid, guard::change_lock(relid));
    guard::present_policy(relid)?;
    // What comes to be waited for from here on is not what the caller has looked at.
    policy_lock::lock_policy_for_change(relid);
    let mut policy = guard::present_policy(relid)?;
    let was_paused = ends_pause && policy.paused_until.take().is_some();
    let is_restored = policy.restored;
    if is_restored {
        check_indexes(relid, &policy)?;
        policy.restored = false;
        // What third owners have is not looked at where a restore was waited for.
        policy.reaches_handed_over &= !policy.handed_over;
        policy.handed_over = false;
        seclabel::store(relid, Some(&policy));
        if policy.is_on() {
            write_label::take_place(relid);
        }
        archive_to::tell_of_wait(relid, &policy);
    } else if was_paused {
        seclabel::set(relid, Some(&policy));
    }
    trigger_placement::sync(relid);
    Ok(is_restored)
}

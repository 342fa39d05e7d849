//! Writing a table's policy.

use super::guard;
use super::mass_expiry::{self, Consent};
use crate::ddl::purge_before_change;
use crate::error::{Error, Result};
use crate::keys::trigger_placement;
use crate::pg::abi::report::or_raise;
use crate::pg::catalog;
use crate::pg::exec::relation::OpenRelation;
use crate::pg::server::background;
use crate::pg::session::{locks, xact};
use crate::policy::{Policy, Shortened};
use crate::store::{label_of, succession};
use crate::worker::shared::places;
use crate::{citus, settings};
use pgrx::pg_sys;
use serde_json::Value;

/// Stores the label, or removes it if the policy is empty. A restored policy stays guarded until
/// `ttl.resume`: a migration script that changes it must not start deletion.
pub(in crate::api) fn write(relid: pg_sys::Oid, policy: &Policy) {
    let was_served = label_of(relid).is_some_and(|former| is_served(&former));
    succession::set(relid, Some(policy));
    if policy.is_on() && policy.restored {
        Error::restored(relid).warn();
    }
    if !was_served && is_served(policy) {
        take_place(relid);
    }
}

/// Whether rows are deleted by the policy.
fn is_served(policy: &Policy) -> bool {
    policy.is_on() && !policy.restored
}

/// Takes a place in shared memory for the table, or each of its partitions, whose policy has just
/// been stored; raises 53400 if there is none.
pub(in crate::api) fn take_place(relid: pg_sys::Oid) {
    xact::next_command();
    or_raise(places::reserve(relid));
}

/// As [`write`], but refuses to expire most of a table without consent (C19), and notes when rows
/// expire sooner by the change (C24).
pub(in crate::api) fn change(
    relid: pg_sys::Oid,
    policy: &mut Policy,
    consent: &Consent,
) -> Result<()> {
    let delay = settings::change_delay();
    if delay > 0 && policy.shortens(label_of(relid).as_ref()) && may_have_rows(relid) {
        let now = background::now();
        let shortened = Shortened::again(policy.local.shortened, now, delay);
        policy.local.shortened = Some(shortened);
    }
    let policy = &*policy;
    let former = label_of(relid);
    let replaced = match former {
        None => succession::replaced_by(relid),
        Some(_) => vec![],
    };
    mass_expiry::watch(relid, policy.hidden, consent, || write(relid, policy))?;
    tell_of_former_options(relid, former.as_ref(), policy);
    replaced
        .into_iter()
        .for_each(|family| tell_of_replaced(relid, family));
    Ok(())
}

/// Changes the policy that the table has, under the lock; unless `revive_expired`, the rows that would live again are deleted
/// first.
pub(in crate::api) fn replace(
    relid: pg_sys::Oid,
    revive_expired: bool,
    consent: &Consent,
    change_policy: impl FnOnce(Policy) -> Result<Policy>,
) -> Result<()> {
    guard::check_changeable(relid)?;
    guard::present_policy(relid)?;
    guard::lock(relid, pg_sys::ShareUpdateExclusiveLock);
    guard::check_changeable(relid)?;
    let policy = change_policy(guard::present_policy(relid)?)?;
    let mut policy = fitting(relid, policy)?;
    if !revive_expired {
        purge_before_change::prevent(relid, Some(&policy), pg_sys::RowExclusiveLock)?;
    }
    change(relid, &mut policy, consent)?;
    trigger_placement::sync(relid);
    Ok(())
}

/// Whether the table or a partition has ever had a row since it was last truncated or vacuumed
/// away. With more partitions than this, or a locked one, it is assumed.
fn may_have_rows(relid: pg_sys::Oid) -> bool {
    const TABLES: usize = 100;
    if citus::is_shell(relid) {
        return true;
    }
    let tables = catalog::all_inheritors(relid);
    tables.len() > TABLES
        || tables.into_iter().any(|table| {
            if !locks::try_relation(table, pg_sys::AccessShareLock) {
                return true;
            }
            catalog::has_rows(table) && OpenRelation::locked(table).blocks() > 0
        })
}

/// Names the TTL indexes that become ordinary ones: the command that turns TTL off did not name
/// them.
pub(in crate::api) fn tell_of_rules(relid: pg_sys::Oid, former: &Policy) {
    let names: Vec<String> = former.rules.iter().map(|rule| rule.index.clone()).collect();
    if !names.is_empty() {
        Error::no_longer_ttl_indexes(relid, &names).notice();
    }
}

/// The policy, if a label may have it.
pub(in crate::api) fn fitting(relid: pg_sys::Oid, policy: Policy) -> Result<Policy> {
    if policy.ts_granularity > 0 && policy.ts_column.is_none() {
        return Err(Error::no_clock(relid));
    }
    policy.check()?;
    Ok(policy)
}

/// That the policy of another table has no effect, or not on all rows below it, since the table has one.
fn tell_of_replaced(relid: pg_sys::Oid, other: pg_sys::Oid) {
    let (table, other) = (
        catalog::qualified_name(relid),
        catalog::qualified_name(other),
    );
    Error::for_warning(format!(
        "the time to live of table {table} replaces that of {other}"
    ))
    .detail("It holds for all tables that inherit from it, also for those that had another.")
    .hint("To see which tables that concerns, run: SELECT * FROM ttl.check();")
    .warn();
}

/// The options that `ttl.disable` leaves in the label, by their names there.
const LASTING: [&str; 8] = [
    "archive_to",
    "delete_between",
    "drop_partitions",
    "hidden",
    "keep_expired",
    "notify",
    "paused_until",
    "ts_granularity",
];

/// For a time to live that is turned on: names the options that are as they were when it was turned off, and are in force
/// again. Nothing of that is silent.
fn tell_of_former_options(relid: pg_sys::Oid, former: Option<&Policy>, policy: &Policy) {
    let Some(former) = former.filter(|it| !it.is_on() && policy.is_on()) else {
        return;
    };
    let [former, present, usual] = [former, policy, &Policy::default()].map(as_json);
    let is_kept = |name: &&str| {
        let value = &present[*name];
        *value == former[*name] && *value != usual[*name]
    };
    let kept: Vec<&str> = LASTING.into_iter().filter(is_kept).collect();
    if kept.is_empty() {
        return;
    }
    let table = catalog::qualified_name(relid);
    let shown = kept.iter().map(|name| match &present[*name] {
        Value::String(text) => format!("{name} = {text}"),
        // The label has the end of a pause as a number.
        Value::Number(_) if *name == "paused_until" => (*name).to_owned(),
        value => format!("{name} = {value}"),
    });
    let shown: Vec<String> = shown.collect();
    let quoted = catalog::quote_literal(&table);
    let ended = kept.iter().map(|name| match *name {
        "archive_to" => format!("SELECT ttl.archive_to({quoted}, NULL);"),
        "paused_until" => format!("SELECT ttl.resume({quoted});"),
        name => format!("SELECT ttl.set_option({quoted}, '{name}', NULL);"),
    });
    let ended: Vec<String> = ended.collect();
    Error::for_notice(format!(
        "table {table} keeps options of its former time to live: {}",
        shown.join(", ")
    ))
    .detail("ttl.disable() without drop_columns leaves them as they are.")
    .hint(format!("To end them, run: {}", ended.join(" ")))
    .notice();
}

/// The policy as its label has it; a pause that is over is none.
fn as_json(policy: &Policy) -> Value {
    let mut policy = policy.clone();
    policy.paused_until = policy
        .paused_until
        .filter(|end| end.is_after(background::now()));
    serde_json::to_value(policy).unwrap_or_default()
}

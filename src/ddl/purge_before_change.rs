//! A change of policy does not revive expired rows, unless the user asks for that
//! (docs/decisions/0018-turning-off-purges-first.md).

use crate::deletion::purge;
use crate::error::{Error, Result};
use crate::pg::relation::Open;
use crate::pg::{background, catalog, timescale, txn};
use crate::policy::Policy;
use crate::settings;
use crate::store::{governing_label, policy_lock};
use pgrx::{PgSqlErrorCode, pg_sys};
use std::collections::HashSet;

/// How many times deletion is tried before the remaining rows count as kept.
const ROUNDS: u32 = 10;

/// For rows that cannot be deleted.
const HINT: &str = "The time to live is not changed before its expired rows are gone. Remove what keeps them, or let them live again with revive_expired => true of ttl.set_default, ttl.disable or ttl.expire_index.";

/// Before the table's policy changes to `to` (`None`: to none), deletes the expired rows that the
/// change would revive. Returns an error if some cannot be deleted.
///
/// The caller holds the table lock for the change. This takes the policy lock before it deletes, so
/// that no worker's batch runs until the end of the transaction.
pub(crate) fn prevent(relid: pg_sys::Oid, to: Option<&Policy>, children_lock: u32) -> Result<()> {
    let tree = catalog::all_inheritors(relid);
    let members: HashSet<_> = tree.iter().copied().collect();
    let revived = |&table: &pg_sys::Oid| {
        let label = governing_label(table)?;
        let policy = &label.policy;
        // The policy of another parent stays in force. A child's own policy may be replaced by one
        // with other columns.
        let revived = if label.labelled_table == relid {
            policy.revives(to)
        } else {
            members.contains(&label.labelled_table) && policy.revives(None)
        };
        revived.then_some((table, label))
    };
    if !tree.iter().any(|table| revived(table).is_some()) {
        return Ok(());
    }
    if timescale::has_columnstore(relid) {
        return Err(Error::columnstore(
            relid,
            "delete the expired rows of",
            " Or let them live again: ttl.disable(..., revive_expired => true).",
        ));
    }
    purge::lock_tree(relid, children_lock);
    for (table, label) in tree.iter().filter_map(revived) {
        policy_lock::lock_policy_for_change(label.labelled_table);
        if label.policy.is_restored(label.labelled_table.to_u32()) {
            if purge::has_expired(table) {
                return Err(Error::restored_rows_in_the_way(label.labelled_table));
            }
            continue;
        }
        let waits = label
            .policy
            .waits_until(background::now(), settings::change_delay());
        if waits.is_some() && purge::has_expired(table) {
            return Err(held_back(label.labelled_table, to));
        }
        txn::hinting(HINT, || empty(table)).map_err(|error| error.or_hint(HINT))?;
    }
    Ok(())
}

/// The error if rows are kept because an earlier change has expired them (C24): the next one may be
/// meant to undo it, and must not delete them without a word.
fn held_back(relid: pg_sys::Oid, to: Option<&Policy>) -> Error {
    let name = catalog::qualified_name(relid);
    let table = catalog::quote_literal(&name);
    let revive = match to {
        None => format!("SELECT ttl.disable({table}, revive_expired => true)"),
        Some(Policy {
            default_ttl: Some(seconds),
            ..
        }) => format!("SELECT ttl.set_default({table}, {seconds}, revive_expired => true)"),
        Some(_) => "revive_expired => true".to_owned(),
    };
    Error::new(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("table {name} has expired rows that are kept for now"),
    )
    .detail("They may have expired by an earlier change of the time to live, and would live again by this one. \"ttl.change_delay\" keeps them on disk.")
    .hint(format!(
        "To bring them back: {revive}. To delete them first: SELECT ttl.purge({table})."
    ))
}

/// Deletes until nothing is left: meanwhile other sessions may commit rows that have already
/// expired, and the owner's triggers may write some.
fn empty(relid: pg_sys::Oid) -> Result<()> {
    for _ in 0..ROUNDS {
        if !purge::has_expired(relid) {
            return Ok(());
        }
        if purge::delete_from(relid)? == 0 {
            break;
        }
    }
    if purge::has_expired(relid) {
        return Err(kept(relid));
    }
    Ok(())
}

/// The error if no row could be deleted: the owner's triggers keep the rows, or they were changed
/// after the transaction's snapshot was taken.
fn kept(relid: pg_sys::Oid) -> Error {
    let table = Open::locked(relid);
    if !table.deletion_concerns_others() {
        return Error::new(
            PgSqlErrorCode::ERRCODE_T_R_SERIALIZATION_FAILURE,
            "could not serialize access due to concurrent update",
        )
        .hint("Try again in a new transaction.");
    }
    Error::expired_rows_kept(relid)
}

//! Expired rows do not come back by a change of policy, unless that is asked for
//! (docs/decisions/0018-turning-off-purges-first.md).

use crate::deletion::purge;
use crate::error::{Error, Result};
use crate::pg::relation::Open;
use crate::pg::{catalog, txn};
use crate::policy::Policy;
use crate::store::{governing_label, policy_lock};
use pgrx::{PgSqlErrorCode, pg_sys};
use std::collections::HashSet;

/// How often deletion is tried before what is left counts as kept.
const ROUNDS: u32 = 10;

/// What to do where a row that is expired cannot go.
const HINT: &str = "The time to live is not changed before its expired rows are gone. Remove what keeps them, or let them live again with revive_expired => true of ttl.set_default, ttl.disable or ttl.expire_index.";

/// Deletes what is expired by the policies now in force, before a change of the
/// table's to the policy `to`, or with `None` to none, by which it would live again. An
/// error if something is left.
///
/// The caller holds the lock on the table under which it changes the policy.
/// The lock on the policy comes before the deletions: so they meet no batch of a
/// worker, and none begins before the end of the transaction.
pub(crate) fn prevent(relid: pg_sys::Oid, to: Option<&Policy>, children_lock: u32) -> Result<()> {
    let tree = catalog::all_inheritors(relid);
    let members: HashSet<_> = tree.iter().copied().collect();
    let revived = |&table: &pg_sys::Oid| {
        let label = governing_label(table)?;
        let policy = &label.policy;
        // Where another parent's policy is in force, that stays so; that of a child
        // gives way to one with other columns, perhaps.
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
    purge::lock_tree(relid, children_lock);
    for (table, label) in tree.iter().filter_map(revived) {
        policy_lock::lock_policy_for_change(label.labelled_table);
        if label.policy.is_restored(label.labelled_table.to_u32()) {
            if purge::has_expired(table) {
                return Err(Error::restored_rows_in_the_way(label.labelled_table));
            }
            continue;
        }
        txn::hinting(HINT, || empty(table)).map_err(|error| error.or_hint(HINT))?;
    }
    Ok(())
}

/// Deletes until nothing is left: others may commit rows meanwhile that were
/// expired before, and the owner's triggers may write some.
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

/// Why nothing was deleted: the owner's own code keeps the rows, or they were
/// changed since the transaction's snapshot was taken.
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

//! A table that a restore has left empty need not wait for `ttl.resume`
//! (docs/decisions/0029-what-waits-after-a-restore.md).

use crate::citus;
use crate::deletion::transaction;
use crate::keys::trigger_placement;
use crate::pg::{catalog, locks, relation};
use crate::policy::Policy;
use crate::store::{index_of, label_of, seclabel};
use pgrx::pg_sys;

/// The most partitions and children of a table: all are locked at once, and the lock table is
/// shared by the whole server.
const FAMILY: usize = 1000;

/// Binds restored policies to their tables if these are empty; returns the tables that still
/// wait.
pub(super) fn empty_tables(mut restored: Vec<pg_sys::Oid>) -> Vec<pg_sys::Oid> {
    // A table that is in use, or cannot be looked at, waits.
    restored
        .retain(|&labelled_table| !transaction::run(|| Ok(adopt(labelled_table))).unwrap_or(false));
    restored
}

fn adopt(labelled_table: pg_sys::Oid) -> bool {
    let is_empty = |relid: &pg_sys::Oid| {
        catalog::class(*relid).is_some_and(|class| {
            class.persistence != pg_sys::RELPERSISTENCE_TEMP
                && (class.relkind != pg_sys::RELKIND_RELATION
                    || relation::Open::locked(*relid).blocks() == 0)
        })
    };
    // A label of Citus's is set on all nodes, by somebody who is there.
    if citus::is_shell(labelled_table) {
        return false;
    }
    let family = catalog::all_inheritors(labelled_table);
    // This lock conflicts with writers: who loads rows keeps theirs until the rows are
    // committed.
    let share = pg_sys::ShareLock;
    if family.len() > FAMILY
        || !family
            .iter()
            .all(|&relid| locks::try_relation(relid, share) && is_empty(&relid))
    {
        return false;
    }
    let Some(policy) =
        label_of(labelled_table).filter(|policy| policy.is_restored(labelled_table.to_u32()))
    else {
        return true;
    };
    // The restore goes on: indexes, keys and the trigger come after the label.
    let complete = policy
        .rules
        .iter()
        .all(|rule| index_of(labelled_table, &rule.index).is_some())
        && !trigger_placement::will_be_created(labelled_table);
    if complete {
        let bound = Policy {
            table_oid: Some(labelled_table.to_u32()),
            ..policy
        };
        seclabel::set(labelled_table, Some(&bound.to_label()));
    }
    complete
}

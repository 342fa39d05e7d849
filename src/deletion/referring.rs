//! Expired rows that refer to a row which goes, or whose key changes.
//!
//! They must neither be in its way (C6) nor stay behind as orphans. PostgreSQL asks the
//! referencing table by a query of its own for each such row: a check (NO ACTION, RESTRICT), or
//! SET NULL and the like. Before that query starts, the expired rows that it would meet are
//! deleted, as ON DELETE CASCADE deletes rows: by the foreign key's own condition, with their
//! triggers queued in the statement that is running. So rows that refer to the deleted ones go by
//! the same way, one after the other, and none of them is on the stack, however long a chain of
//! them is (`docs/decisions/0074-referring-rows.md`). The query then sees what is left on disk: live
//! rows, and expired ones that a trigger has kept.

use super::reach::{self, Reach, finds_any};
use super::removals::{KnownQuery, TableRemoval, expired, known, parameters, partition};
use super::{left_to_owner, message, replanned, underway};
use crate::pg::abi::context::Mark;
use crate::pg::abi::externs;
use crate::pg::abi::report::or_raise;
use crate::pg::abi::variable::Variable;
use crate::pg::catalog;
use crate::pg::catalog::code;
use crate::pg::exec::executor::ExecutorQuery;
use crate::pg::exec::kept_query::{self, CascadeStatement, KeptQuery, Parameters};
use crate::pg::session::{gate, locks, owner_session};
use crate::settings;
use crate::store::cache;
use crate::visibility::planned_statement;
use crate::visibility::referential::{Action, Enforced};
use pgrx::pg_sys::{self, Oid};
use pgrx::prelude::*;
use std::cell::Cell;
use std::time::Instant;

/// The table that a batch deletes from, and how many rows of it have gone in this way.
static COUNTED: Variable<Cell<(Oid, u64)>> = Variable::new(Cell::new((pg_sys::InvalidOid, 0)));

/// From now on counts the rows of this table that go in this way.
pub(super) fn count(relid: Oid) {
    COUNTED.set((relid, 0));
}

/// How many rows have gone since [`count`].
pub(super) fn counted() -> u64 {
    COUNTED.get().1
}

/// What is done before PostgreSQL's query.
#[derive(Clone, Copy)]
enum BeforeQuery {
    Nothing,
    /// Rows have gone, or others' transactions were waited for.
    Removed,
    /// PostgreSQL's query would meet no row, and is left out.
    Skip,
}

/// Called before a query starts: if it is PostgreSQL's own for a foreign key, the expired rows that
/// must not count are removed. Whether the query is not to be run at all ([`Reach::skips`]).
///
/// Unguarded, with nothing to drop, but for the removal itself.
pub(crate) fn before(query: ExecutorQuery<'_>) -> bool {
    if !externs::InNoForceRLSOperation() {
        return false;
    }
    let invalidations = replanned::note(query);
    let Some(relid) = query
        .plan()
        .and_then(|plan| may_concern(plan.first_table()?))
    else {
        return false;
    };
    match remove(query, relid, invalidations) {
        BeforeQuery::Nothing => return false,
        BeforeQuery::Removed => query.see_latest(),
        BeforeQuery::Skip => return true,
    }
    false
}

/// Marks a query that has been started and is not to be run.
static LEFT_OUT: Mark<()> = Mark::new();

/// Notes that the query, which has been started, is not to be run.
pub(crate) fn leave_out(query: ExecutorQuery<'_>) {
    if let Some(memory) = query.memory() {
        LEFT_OUT.keep(memory, ());
    }
}

/// Whether that has been noted.
pub(crate) fn is_left_out(query: ExecutorQuery<'_>) -> bool {
    externs::InNoForceRLSOperation()
        && query
            .memory()
            .is_some_and(|memory| LEFT_OUT.find(memory).is_some())
}

/// The table, if rows of it may expire, or if the extension is deleting.
fn may_concern((relid, kind): (Oid, u8)) -> Option<Oid> {
    let partitioned = kind == pg_sys::RELKIND_PARTITIONED_TABLE;
    (partitioned || underway::is_underway() || !cache::is_known_to_have_none(relid))
        .then_some(relid)
}

/// Removes the expired rows that the query would meet.
#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
extern "C-unwind" fn remove(
    query: ExecutorQuery<'_>,
    relid: Oid,
    invalidations: u64,
) -> BeforeQuery {
    let unknown = || {
        // PostgreSQL's own by a name that means another table by now, perhaps.
        if query.plan().is_some_and(|plan| plan.writes()) && !kept_query::is_running(query) {
            reach::refuse_unknown(relid);
        }
        BeforeQuery::Nothing
    };
    removed(query, relid, invalidations).unwrap_or_else(unknown)
}

fn removed(query: ExecutorQuery<'_>, relid: Oid, invalidations: u64) -> Option<BeforeQuery> {
    let known = known(query, relid)?;
    let parameters = parameters(&known.enforced, query)?;
    let reach = Reach::of(relid, &known.enforced);
    if reach.skips(&known, &parameters) {
        return Some(BeforeQuery::Skip);
    }
    if known.enforced.action == Action::Delete || settings::show_expired() {
        return Some(BeforeQuery::Nothing);
    }
    let joins = known.leads_back || underway::root().is_some();
    let prepare = |removal: &TableRemoval| {
        let query = prepared(&known, relid, removal, &reach, &parameters)?;
        Some((removal.relid, query))
    };
    let mut removals = known.removals.iter();
    let Some(first) = removals.next() else {
        return Some(BeforeQuery::Nothing);
    };
    let first = prepare(first)?;
    underway::during(reach.root, Some(relid), || {
        let statement = CascadeStatement::begin(joins);
        let mut next = Some(first);
        while let Some((target, removal)) = next {
            if let Some(removal) = removal {
                let rows = planned_statement::removing(target, removal.text(), || {
                    removal.run(&parameters)
                });
                if rows > 0 {
                    done(target, rows);
                }
            }
            next = removals.next().and_then(prepare);
        }
        if statement.is_own() {
            // Up to 17, AFTER triggers run as the current user.
            let identity = gate::become_for_triggers(reach.root);
            let running = replanned::begin(query, invalidations);
            statement.end();
            replanned::end(running);
            identity.restore();
        }
    });
    Some(BeforeQuery::Removed)
}

/// The query that removes rows of one table; `Some(None)` if there is no row, or none is to be removed.
fn prepared(
    known: &KnownQuery,
    relid: Oid,
    removal: &TableRemoval,
    reach: &Reach,
    parameters: &Parameters,
) -> Option<Option<KeptQuery>> {
    let target = removal.relid;
    let meets = || meets_any(&known.enforced, relid, target, parameters);
    if is_untrusted(reach, target) || left_to_owner::is_handed_over(target) {
        lock_as_delete(target);
        if known.present_code(removal).is_any() || reach::sets_off_code(target) {
            wait_for_owner(target, meets);
            return Some(None);
        }
    }
    let looks_first = removal.looks_first || reach.is_stranger() || message::is_wanted();
    if looks_first && !meets()? {
        return Some(None);
    }
    if reach.is_stranger() {
        lock(target);
        reach.heed(target, &known.present_code(removal));
    }
    if message::is_wanted() {
        message::begin(&catalog::qualified_name(target));
    }
    Some(or_raise(removal.way.query(target, parameters)))
}

/// Locks another owner's table so that no trigger comes to it, nor a partition with one.
fn lock(target: Oid) {
    if catalog::is_partitioned(target) {
        locks::relation(target, pg_sys::ShareUpdateExclusiveLock);
    }
    lock_as_delete(target);
}

/// Locks the table as the DELETE will, so that no trigger comes to it between the look at its code and that.
fn lock_as_delete(target: Oid) {
    for table in code::with_partitions(target) {
        locks::relation(table, pg_sys::RowExclusiveLock);
    }
}

/// Whether this is the session of a user who could not become the owner: rows whose deletion runs code of the owner are left
/// to that one's worker. So are a superuser's, which [`Reach`] does not count as another owner's: PostgreSQL fires no trigger of
/// rows that a foreign key only looks at.
fn is_untrusted(reach: &Reach, target: Oid) -> bool {
    let is_superusers = || {
        let owner = catalog::owner(target);
        !reach.is_stranger() && owner.is_some_and(gate::is_untrusted)
    };
    gate::is_untrusted(reach.root) || is_superusers()
}

/// Until none is there; raises 55006 if that takes too long, and in a worker, which has other rows to delete.
fn wait_for_owner(target: Oid, meets: impl Fn() -> Option<bool>) {
    let since = Instant::now();
    while meets() == Some(true) {
        if owner_session::way().is_some() {
            left_to_owner::refuse(target);
        }
        left_to_owner::wait(target, since);
    }
}

/// Whether an expired row is there.
fn meets_any(
    enforced: &Enforced,
    relid: Oid,
    target: Oid,
    parameters: &Parameters,
) -> Option<bool> {
    let condition = expired(&*cache::policy(target)?);
    let search = enforced.search(partition(relid, target), &condition);
    Some(finds_any(search, target, parameters))
}

/// Counts the rows that have gone, and tells consumers of logical decoding.
fn done(relid: Oid, rows: u64) {
    let (counted, before) = COUNTED.get();
    if counted == relid {
        COUNTED.set((counted, before + rows));
    }
    if message::is_wanted() {
        message::end(&catalog::qualified_name(relid), rows);
    }
}

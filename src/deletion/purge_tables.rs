//! Deletes expired rows in a session's own transaction, as the tables' owners.

use super::archiving::Locks;
use super::deleter::Deleter;
use super::job::Job;
use super::receiver;
use crate::error::{Error, Result};
use crate::pg::catalog::{self, cascade, roles};
use crate::pg::session::gate::{self, GateVisit};
use crate::pg::session::{self, locks};
use pgrx::pg_sys;

/// Locks the table, its partitions and its children, and returns them.
pub(crate) fn lock_tree(relid: pg_sys::Oid, mode: u32) -> Vec<pg_sys::Oid> {
    let tables = catalog::all_inheritors(relid);
    tables
        .iter()
        .for_each(|&table| locks::relation(table, mode));
    tables
}

/// Deletes the expired rows of one table by the policy in force for it: a child may follow
/// another parent. The caller holds ROW EXCLUSIVE or more.
pub(crate) fn delete_from(relid: pg_sys::Oid) -> Result<u64> {
    let delete = |visit: &GateVisit| match Job::of(relid) {
        None => Ok(0),
        Some(job) => Deleter::new(visit, &job, Locks::Wait).map(|deleter| deleter.delete_expired()),
    };
    as_owner(relid, delete).unwrap_or(Ok(0))
}

/// Whether an expired row is still in the table. The caller holds a lock on it.
pub(crate) fn has_expired(relid: pg_sys::Oid) -> bool {
    has_row(relid, Job::of, "")
}

/// Whether this transaction has brought rows into the table that are to be deleted.
pub(crate) fn has_brought_expired(relid: pg_sys::Oid) -> bool {
    const OWN: &str =
        "xmin OPERATOR(pg_catalog.=) pg_catalog.pg_current_xact_id()::pg_catalog.xid AND ";
    // A subscription may act for tables of others.
    roles::owns_relation(relid, roles::current_user()) && has_row(relid, Job::lagging, OWN)
}

/// As [`has_expired`], also of rows that may not be deleted yet, in a copy of a reference table.
pub(crate) fn has_any_expired(relid: pg_sys::Oid) -> bool {
    has_row(relid, Job::of_all, "")
}

/// Whether a row is in the table that the job would delete and that meets the condition.
fn has_row(relid: pg_sys::Oid, job: fn(pg_sys::Oid) -> Option<Job>, condition: &str) -> bool {
    let has_row = |visit: &GateVisit| {
        job(relid).is_some_and(|job| {
            let query = job.remaining(&format!("{}{condition}", job.past())) + " LIMIT 1";
            // By the indexes, whatever the planner expects to find early in the table.
            !session::index_only(|| receiver::collect(visit, &job, &query, &[], 1)).is_empty()
        })
    };
    as_owner(relid, has_row).unwrap_or(false)
}

/// Raises 42501.
fn not_owner(relid: pg_sys::Oid) -> ! {
    let table = catalog::qualified_name(relid);
    Error::denied(format!("must be owner of table {table}"))
        .detail("Expired rows are deleted as the owner of their table.")
        .hint("Have the owner run the statement, or give the table and its partitions one owner.")
        .raise()
}

/// Runs `work` as the table's owner, as whom its triggers and the functions in its indexes are
/// to run, whichever member of the owning role asked. `None`: the relation has no storage.
pub(crate) fn as_owner<T>(relid: pg_sys::Oid, work: impl FnOnce(&GateVisit) -> T) -> Option<T> {
    let class = catalog::class(relid)?;
    (class.has_rows()).then(|| {
        // A partition may belong to another owner than its parent, whose triggers and indexes it has: as in their own DELETE
        // these run for its owner only.
        let user = roles::current_user();
        let may_act = || user == class.owner || catalog::cascade::may_act_below(relid, relid);
        if !roles::has_rights_of(user, class.owner) || !may_act() {
            not_owner(relid);
        }
        if cascade::reaches_strangers(relid, class.owner) {
            gate::visit_confined(class.owner, work)
        } else {
            gate::visit(class.owner, work)
        }
    })
}

//! Checks that the SQL functions make first.

use super::cluster;
use crate::deletion::left_to_owner;
use crate::error::{Error, Result};
use crate::keys::trigger_placement;
use crate::pg::catalog::{self, roles, timescale};
use crate::pg::session::gate::{self, GateVisit};
use crate::pg::session::locks;
use crate::policy::Policy;
use crate::store::{self, Inherited, label_provider};
use crate::worker::builder;
use pgrx::{PgSqlErrorCode, pg_sys};
use std::rc::Rc;

/// Raises 25006 in a read-only transaction or on a standby.
pub(in crate::api) fn check_writable(function: &core::ffi::CStr) {
    // SAFETY: both functions raise an error or do nothing; pgrx's binding turns the error into a panic.
    unsafe {
        pg_sys::PreventCommandIfReadOnly(function.as_ptr());
        pg_sys::PreventCommandDuringRecovery(function.as_ptr());
    }
}

/// Refuses users who are not the table's owner or a member of that role (42501).
pub(in crate::api) fn check_owner(relid: pg_sys::Oid) -> Result<()> {
    label_provider::check_relation(relid)?;
    if roles::owns_relation(relid, roles::current_user()) {
        return Ok(());
    }
    let message = format!("must be owner of table {}", catalog::qualified_name(relid));
    Err(Error::denied(message)
        .hint("Use a role that owns the table or inherits the privileges of its owner."))
}

/// As [`check_owner`], before a change of the policy.
pub(in crate::api) fn check_change(relid: pg_sys::Oid) -> Result<()> {
    check_owner(relid)?;
    cluster::begin_change(relid)
}

/// As [`check_change`], for a change after which the table has a time to live. Refuses what Citus has
/// and cannot have one (C35), and hypertables of TimescaleDB with a columnstore (0A000).
pub(in crate::api) fn check_changeable(relid: pg_sys::Oid) -> Result<()> {
    check_owner(relid)?;
    label_provider::check_tables_above(relid)?;
    if timescale::has_columnstore(relid) {
        return Err(Error::columnstore(relid, "set a time to live on", ""));
    }
    cluster::check(relid)?;
    cluster::begin_change(relid)
}

/// The argument's value; raises 22004 for NULL.
pub(in crate::api) fn required<T>(argument: Option<T>, name: &str) -> Result<T> {
    argument.ok_or_else(|| {
        let message = format!("argument \"{name}\" must not be null");
        Error::new(PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED, message)
            .detail("NULL has no meaning for this argument.")
            .hint("Give a value. An argument that has a default can be left out.")
    })
}

/// The table's own label. Refuses a partition or child that follows the policy of an ancestor
/// (42809).
pub(in crate::api) fn own_policy(relid: pg_sys::Oid) -> Result<Option<Policy>> {
    match store::governing_label(relid) {
        Some(Inherited {
            labelled_table,
            policy,
        }) if labelled_table == relid => Ok(Some(Rc::unwrap_or_clone(policy))),
        Some(Inherited { labelled_table, .. }) => {
            let (table, root) = (
                catalog::qualified_name(relid),
                catalog::qualified_name(labelled_table),
            );
            let message = format!("table {table} follows the time to live of {root}");
            Err(Error::wrong_kind(message)
                .detail("A partitioned or inherited table's time to live holds for all its partitions and children.")
                .hint(format!("Change it on {root}.")))
        }
        None => Ok(None),
    }
}

/// As [`own_policy`]; refuses a table without one (55000).
pub(in crate::api) fn present_policy(relid: pg_sys::Oid) -> Result<Policy> {
    own_policy(relid)?.ok_or_else(|| Error::no_policy(relid))
}

/// The policy in force for the table, its own or an ancestor's; refuses a table without one (55000).
pub(in crate::api) fn governed(relid: pg_sys::Oid) -> Result<Inherited> {
    store::governing_label(relid).ok_or_else(|| Error::no_policy(relid))
}

/// The lock for a change of the policy that adds nothing but the trigger, if that is needed.
pub(in crate::api) fn change_lock(relid: pg_sys::Oid) -> u32 {
    match trigger_placement::will_be_created(relid) {
        true => pg_sys::ShareRowExclusiveLock,
        false => pg_sys::ShareUpdateExclusiveLock,
    }
}

/// Locks the table until the end of the transaction. A build of its indexes in the background,
/// which may take hours, gives way. The caller has checked the owner.
pub(in crate::api) fn lock(relid: pg_sys::Oid, mode: u32) {
    if mode >= pg_sys::ShareUpdateExclusiveLock {
        builder::give_way(relid);
    }
    locks::relation(relid, mode);
}

/// M11: `drop_partitions` needs a partitioned table. It need not be partitioned by the time column
/// yet: `ttl.problems` reports that.
pub(in crate::api) fn require_partitioned(relid: pg_sys::Oid) -> Result<()> {
    if catalog::is_partitioned(relid) {
        return Ok(());
    }
    let message = format!(
        "cannot drop partitions of table {}",
        catalog::qualified_name(relid)
    );
    Err(Error::wrong_kind(message)
        .detail("It is not a partitioned table.")
        .hint("Leave out drop_partitions: expired rows are deleted one by one."))
}

/// C21: TimescaleDB refuses CREATE INDEX CONCURRENTLY on a hypertable (0A000).
pub(in crate::api) fn refuse_hypertable(relid: pg_sys::Oid) -> Result<()> {
    if !timescale::is_hypertable(relid) {
        return Ok(());
    }
    let message = format!(
        "cannot build indexes of hypertable {} concurrently",
        catalog::qualified_name(relid)
    );
    Err(Error::unsupported(message)
        .detail("TimescaleDB does not support that.")
        .hint("Leave out concurrently: ttl.enable() builds them itself, and keeps others from writing meanwhile."))
}

/// Runs a query on the table for a caller who may read it: as its owner, as planning it can run the
/// owner's code; as the caller, where row-level security tells what they may read.
pub(in crate::api) fn reading<T>(relid: pg_sys::Oid, look: impl FnOnce(&GateVisit) -> T) -> T {
    match catalog::class(relid) {
        Some(class) if !roles::is_subject_to_rls(relid) => {
            left_to_owner::without_code(relid, class.owner, || gate::visit(class.owner, look))
        }
        _ => gate::as_oneself(look),
    }
}

//! Rows whose deletion runs code of the table's owner, in the session of a user who could not become the owner.
//!
//! The code must not run in that session ([`gate::is_untrusted`]). So the row is left to the owner's worker, which deletes it
//! as soon as it can, and the session waits for that (`docs/decisions/0096-owners-code-in-owners-sessions.md`).

use super::reach;
use crate::clock::held;
use crate::error::Error;
use crate::pg::catalog::{self, code, roles};
use crate::pg::exec::guarded_planning;
use crate::pg::server::background;
use crate::pg::session::gate;
use crate::settings;
use crate::store::{cache, paused_tables};
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, pg_sys};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Has a worker come for a row of a table, which is given by block and offset.
type RowRequest = fn(pg_sys::Oid, (u32, u16));

static REQUEST: OnceLock<RowRequest> = OnceLock::new();

/// Called once, at load.
pub(crate) fn init(request: RowRequest) {
    REQUEST.get_or_init(|| request);
}

/// How long a session waits for a worker.
const LONGEST: Duration = Duration::from_secs(5);
/// How often it looks whether the row is gone, in milliseconds.
const EACH: i64 = 10;

/// Whether rows of the table are left to the owner's worker. `runs_code`: their deletion fires triggers of the table or
/// writes to an archive; then raises 42501 within a deletion of another owner's rows.
#[pg_guard]
pub(crate) extern "C-unwind" fn is_left(relid: pg_sys::Oid, runs_code: bool) -> bool {
    let Some(class) = catalog::class(relid) else {
        return false;
    };
    if runs_code {
        reach::refuse_strangers_triggers(relid, class.owner);
    }
    let is_left = gate::is_untrusted(class.owner) || is_handed_over(relid);
    is_left && (runs_code || reach::sets_off_code(relid))
}

/// Whether deletion may run another role's code: the table, or one that its deletion reaches, has had another owner since the last
/// `ttl.resume`. Until the next one, no session runs that code, not even the new owner's.
pub(super) fn is_handed_over(relid: pg_sys::Oid) -> bool {
    cache::policy(relid).is_some_and(|policy| policy.label.handed_over)
}

/// As [`wait`], for this row, which the worker is to delete first.
#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
pub(crate) extern "C-unwind" fn wait_for(relid: pg_sys::Oid, row: (u32, u16), since: Instant) {
    if let Some(request) = REQUEST.get().filter(|_| is_served(relid)) {
        request(relid, row);
    }
    wait(relid, since);
}

/// Waits for a moment; raises 55006 if no worker comes to the table for the time being, or none seems to, since that goes on
/// for so long.
#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
pub(crate) extern "C-unwind" fn wait(relid: pg_sys::Oid, since: Instant) {
    if since.elapsed() > LONGEST || !is_served(relid) {
        refuse(relid);
    }
    background::wait(EACH);
}

/// Whether a worker deletes rows of the table as soon as they have expired, by the policy and the settings.
fn is_served(relid: pg_sys::Oid) -> bool {
    let now = background::now();
    settings::enabled()
        && !held::is_held()
        && cache::policy(relid).is_none_or(|policy| {
            let rests = paused_tables::at(policy.label.rest(), now).is_some();
            let waits = policy.label.restored || policy.waits_until(now).is_some();
            !rests && !waits && policy.keep_expired == 0
        })
}

/// Raises 55006: no worker will delete the row, or none has.
#[pg_guard]
pub(crate) extern "C-unwind" fn refuse(relid: pg_sys::Oid) -> ! {
    let table = catalog::qualified_name(relid);
    let error = Error::new(
        PgSqlErrorCode::ERRCODE_OBJECT_IN_USE,
        format!("an expired row of table {table} has not been deleted yet"),
    );
    if let Some(policy) = cache::policy(relid).filter(|policy| policy.label.handed_over) {
        error.by_former_owner(policy.labelled_table).raise();
    }
    error.detail("Its deletion runs triggers or writes to an archive as the table's owner, which only a worker or a session of the owner does.")
    .hint(format!(
        "Try again. If the error persists, run: SELECT ttl.problems({});",
        catalog::quote_literal(&table)
    ))
    .raise()
}

/// Runs `work`, which plans a query on the table as its owner, in the session of another user: raises 42501 if that runs
/// code of the owner, and the user could not become the owner.
pub(crate) fn without_code<T>(
    relid: pg_sys::Oid,
    owner: pg_sys::Oid,
    work: impl FnOnce() -> T,
) -> T {
    if !gate::is_untrusted(owner) {
        return work();
    }
    if let Some(what) = code::at_planning(relid) {
        let (table, owner) = (catalog::qualified_name(relid), roles::name(owner));
        Error::denied(format!(
            "the query would run {what} of table {table}, which belongs to {owner}"
        ))
        .detail("It is planned as the table's owner, whose code does not run in sessions of other users.")
        .hint("Have the owner run the statement.")
        .raise();
    }
    let guarded = guarded_planning::enter(relid);
    let result = work();
    guarded_planning::leave(guarded);
    result
}

//! `ttl.live_or_removed()`: a foreign key meets an expired row on its referencing side.
//!
//! When a referenced row is deleted or its key changes, PostgreSQL looks for referencing rows,
//! and refuses, updates or deletes. An expired row must not matter there (C6), nor stay behind
//! as an orphan: it is removed.

use super::liveness::Liveness;
use super::removal::{self, Deletion, Removal};
use crate::error::Error;
use crate::pg::call::Call;
use crate::pg::context::Context;
use crate::pg::table::Table;
use crate::pg::{catalog, externs, fmgr, locks, relation, roles};
use crate::store::cache;
use pgrx::PgSqlErrorCode;
use pgrx::pg_sys::{self, ItemPointerData, Oid};
use pgrx::prelude::*;

fmgr::finfo_v1!(pg_finfo_ttl_live_or_removed);

/// `ttl.live_or_removed(relation oid, place tid, live boolean) RETURNS boolean`: whether the row
/// counts. False: it was expired and is gone. An expired row that a trigger keeps counts.
///
/// Anybody may call it, since the statements of foreign keys run as the tables' owners. Only
/// calls that the planner has put into such a statement count: others could name any TID. It
/// trusts no argument: it removes what is expired by the row on disk and the policy in force.
/// Raises 0A000 elsewhere.
///
/// Unguarded, with nothing to drop: errors pass unharmed.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_live_or_removed(
    call: Call<'_, (Oid, ItemPointerData, bool)>,
) -> pg_sys::Datum {
    let (Some(relid), Some(mut tid), Some(false)) = call.args() else {
        return pg_sys::Datum::from(true);
    };
    pg_sys::Datum::from(Context::with_current(|memory| {
        let Some((liveness, deletion)) = removing(relid, call.is_by_filter(), memory) else {
            return true;
        };
        let removal = Table::with_locked(relid, |table| {
            table.with_slot(|slot| removal::remove_if_expired(slot, &mut tid, deletion, &liveness))
        });
        removal != Removal::Gone
    }))
}

/// How a row of the table is removed; `None` if none of it can be expired. Leaves the table
/// locked.
#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
extern "C-unwind" fn removing(
    relid: pg_sys::Oid,
    by_filter: bool,
    memory: Context<'_>,
) -> Option<(Liveness<'_>, Deletion)> {
    if !by_filter || !externs::InNoForceRLSOperation() {
        Error::new(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            "ttl.live_or_removed() can be called only where a foreign key is enforced",
        )
        .hint("Use ttl.live() to ask, and ttl.purge() to delete.")
        .raise();
    }
    let policy = cache::policy(relid).filter(|policy| policy.hides())?;
    if !is_enforced_on(relid) {
        return None;
    }
    locks::relation(relid, pg_sys::RowExclusiveLock);
    let deletion = Deletion::of(relation::Open::locked(relid).table());
    Some((Liveness::of(&policy, relid, memory), deletion))
}

/// Whether a foreign key's statement can have met a row here: it runs as the owner of the
/// referencing table, or of a table that this one is a partition of. Somebody else could run a
/// cached plan again.
fn is_enforced_on(relid: pg_sys::Oid) -> bool {
    let user = roles::current_user();
    catalog::class(relid).is_some_and(|class| class.relkind == pg_sys::RELKIND_RELATION)
        && std::iter::once(relid)
            .chain(catalog::ancestors(relid))
            .any(|table| roles::owns_relation(table, user))
}

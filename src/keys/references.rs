//! Which rows a new reference can refer to, on PostgreSQL 19 ([`crate::pg::exec::fast_path`]). Before,
//! and where 19 runs a query (partitioned tables, PERIOD, other kinds of indexes), the restriction
//! hides expired rows from it as from any other.

use super::liveness::Liveness;
use crate::citus::{self, Doing};
use crate::clock::{execution, moment};
use crate::error::{Error, Result};
use crate::pg::abi::context::Context;
use crate::pg::abi::externs;
use crate::pg::catalog::{self, roles};
use crate::pg::exec::fast_path;
use crate::pg::exec::table::Slot;
use crate::pg::session::xact;
use crate::settings;
use crate::store::cache;
use crate::visibility::referential;
use core::ffi::c_void;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// Installs the hook; once, at load.
pub(super) fn init() {
    fast_path::init::<ReferenceJudge>();
}

struct ReferenceJudge;

impl fast_path::Judge for ReferenceJudge {
    fn may_mind(table: pg_sys::Oid) -> bool {
        !cache::is_known_to_have_none(table)
    }

    #[pg_guard]
    extern "C-unwind" fn begin(table: pg_sys::Oid) {
        let Some(policy) = cache::policy(table).filter(|policy| policy.hides()) else {
            return;
        };
        if settings::show_expired()
            || citus::is_doing(Doing::Copying)
            || roles::reads_physically(table) && !externs::InSecurityRestrictedOperation()
            || referential::is_validated_by_ddl(table)
        {
            return;
        }
        Context::with_current(|memory| {
            let liveness = &memory.put(vec![Liveness::of(&policy, table, memory)])[0];
            // SAFETY: PostgreSQL has opened the table; the memory is the trigger's.
            unsafe { fast_path::begin(table, xact::nest_level(), liveness) }
        });
    }

    /// By the time of a query that begins now, or, after a wait, goes on now (C14).
    fn is_hidden(liveness: *const c_void, row: Slot<'_>, has_waited: bool) -> bool {
        // SAFETY: `begin` allocated it in a context that lives until `end`.
        let liveness = unsafe { &*liveness.cast::<Liveness<'_>>() };
        let outer = execution::suspend();
        if has_waited && moment::clock_advances_during_waits() {
            execution::advance(moment::after_wait());
        }
        let is_live = liveness.is_live(row);
        execution::leave(outer);
        !is_live
    }
}

/// 0A000: nothing is committed that may refer to a row which was not judged.
pub(crate) fn before_commit() -> Result<()> {
    let Some(table) = fast_path::unfinished() else {
        return Ok(());
    };
    let table = catalog::qualified_name(table);
    Err(Error::unsupported(format!(
        "PostgreSQL has looked up a row of table {table} in a way that ttl_ext does not know"
    ))
    .detail("A row may refer to an expired one, so nothing is committed.")
    .hint("Update ttl_ext to a version that supports this minor version of PostgreSQL, or go back to the one before."))
}

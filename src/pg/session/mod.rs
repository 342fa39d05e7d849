//! The session: settings of a background worker, and of parts of a user's transaction.

pub(crate) mod contained_errors;
pub(crate) mod gate;
pub(crate) mod labels;
pub(crate) mod locks;
pub(crate) mod owner_session;
pub(crate) mod scoped;
pub(crate) mod top_level;
pub(crate) mod txn;
pub(crate) mod xact;

use crate::pg::abi::externs;
use pgrx::pg_sys;
use std::ffi::{CStr, CString};

/// Sets a parameter as the worker needs it, above the configuration, the database and the role;
/// what a user's code sets instead ends with [`discard_all`].
pub(crate) fn force(name: &str, value: &str) {
    let (Ok(name), Ok(value)) = (CString::new(name), CString::new(value)) else {
        return;
    };
    // SAFETY: both strings outlive the call, which copies them.
    unsafe {
        pg_sys::SetConfigOption(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_SUSET,
            pg_sys::GucSource::PGC_S_OVERRIDE,
        );
    }
}

pub(crate) fn is_preloading() -> bool {
    // SAFETY: reads a variable that is set before libraries are loaded.
    unsafe { pg_sys::process_shared_preload_libraries_in_progress }
}

/// Whether this is a worker of logical replication, which applies others' changes.
pub(crate) fn applies_others_changes() -> bool {
    externs::IsLogicalWorker()
}

/// Whether pg_upgrade runs this server.
pub(crate) fn is_binary_upgrade() -> bool {
    // SAFETY: reads a variable that only this process writes.
    unsafe { pg_sys::IsBinaryUpgrade }
}

/// Whether a statement runs that is part of CREATE EXTENSION or ALTER EXTENSION UPDATE.
pub(crate) fn is_creating_extension() -> bool {
    // SAFETY: reads a variable that only this process writes.
    unsafe { pg_sys::creating_extension }
}

/// What the session is called (`application_name`), in the server's encoding.
pub(crate) fn application_name() -> Option<&'static CStr> {
    // SAFETY: null or the setting's value, which lives until it changes: not while it is compared.
    unsafe {
        let name = pg_sys::application_name;
        (!name.is_null()).then(|| CStr::from_ptr(name))
    }
}

/// Whether this is a worker of a parallel query.
pub(crate) fn is_parallel_worker() -> bool {
    // SAFETY: reads a variable that only this process writes.
    unsafe { pg_sys::ParallelWorkerNumber >= 0 }
}

/// Makes the session's cached plans again before their next use.
pub(crate) fn forget_plans() {
    // SAFETY: marks them as invalid; needs no transaction.
    unsafe { pg_sys::ResetPlanCache() };
}

/// Plans the queries of `work` without sorting or reading whole tables if there is another way,
/// whatever the statistics say: a batch must read no more than it deletes. An error ends the
/// settings with the transaction.
pub(crate) fn index_only<T>(work: impl FnOnce() -> T) -> T {
    with_settings(
        &[(c"enable_sort", c"off"), (c"enable_seqscan", c"off")],
        work,
    )
}

/// Runs `work` with a `search_path` in which no user can create objects: what PostgreSQL writes
/// out (`pg_get_expr`) then reads the same for everybody. An error ends the setting with the
/// transaction.
///
/// SQL functions that fire a user's triggers do this for a part of their work, instead of having
/// a SET clause for all of it: triggers find the session's own path.
pub(crate) fn with_safe_search_path<T>(work: impl FnOnce() -> T) -> T {
    with_settings(
        &[
            (c"search_path", c"pg_catalog, pg_temp"),
            (c"quote_all_identifiers", c"off"),
        ],
        work,
    )
}

/// Runs `work`, which fires triggers as those of the session's own statements, even where it replays others'
/// changes (`session_replication_role`). An error ends the setting with the subtransaction.
pub(crate) fn as_origin<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: reads a setting's variable, which only this process writes.
    let role = unsafe { pg_sys::SessionReplicationRole };
    if role == pg_sys::SESSION_REPLICATION_ROLE_REPLICA.cast_signed() {
        with_settings(&[(c"session_replication_role", c"origin")], work)
    } else {
        work()
    }
}

/// Sets it until the end of the current nest level, with any user's privileges.
///
/// # Safety
/// Within a transaction and a nest level of its own.
pub(super) unsafe fn set_locally(name: &CStr, value: &CStr) {
    // SAFETY: as required of the caller.
    unsafe { change(name, value, pg_sys::GucAction::GUC_ACTION_SAVE) };
}

/// Limits waiting for locks in the rest of the transaction, in a background process.
pub(crate) fn limit_lock_waits(milliseconds: i32) {
    if let Ok(value) = CString::new(milliseconds.to_string()) {
        // SAFETY: within a transaction, at its top level, with which the setting ends.
        unsafe { set_locally(c"lock_timeout", &value) };
    }
}

/// Sets it for the session, with any user's privileges.
///
/// # Safety
/// In no transaction; a value that needs no look-up.
pub(super) unsafe fn set(name: &CStr, value: &CStr) {
    // SAFETY: as required of the caller.
    unsafe { change(name, value, pg_sys::GucAction::GUC_ACTION_SET) };
}

/// # Safety
/// As [`set_locally`] or [`set`].
unsafe fn change(name: &CStr, value: &CStr, action: pg_sys::GucAction::Type) {
    // SAFETY: as required of the caller.
    unsafe {
        pg_sys::set_config_option(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_SUSET,
            pg_sys::GucSource::PGC_S_SESSION,
            action,
            true,
            0,
            false,
        );
    }
}

/// Runs `work`, in which waiting for a lock is an error. An error ends the setting with the
/// subtransaction.
pub(crate) fn without_waiting<T>(work: impl FnOnce() -> T) -> T {
    with_settings(&[(c"lock_timeout", c"1")], work)
}

/// Analyzes the queries of `work` without identifiers, without which pg_stat_statements and its like
/// do not keep them. Queries of a user's code that these run have theirs. An error ends the setting
/// with the subtransaction.
pub(crate) fn without_query_id<T>(work: impl FnOnce() -> T) -> T {
    with_settings(&[(c"compute_query_id", c"off")], work)
}

/// Runs `work` with another value of a parameter. An error ends that with the subtransaction.
pub(crate) fn with_setting<T>(name: &CStr, value: &CStr, work: impl FnOnce() -> T) -> T {
    with_settings(&[(name, value)], work)
}

fn with_settings<T>(settings: &[(&CStr, &CStr)], work: impl FnOnce() -> T) -> T {
    // SAFETY: within a transaction; the nest level begun here is ended here.
    unsafe {
        let nest = pg_sys::NewGUCNestLevel();
        for (name, value) in settings {
            set_locally(name, value);
        }
        let result = work();
        pg_sys::AtEOXact_GUC(true, nest);
        result
    }
}

/// DISCARD ALL, in a background worker's transaction.
pub(crate) fn discard_all() {
    let mut stmt = pg_sys::DiscardStmt {
        type_: pg_sys::NodeTag::T_DiscardStmt,
        target: pg_sys::DiscardMode::DISCARD_ALL,
    };
    // SAFETY: outside any block of transactions, as the statement requires.
    unsafe { pg_sys::DiscardCommand(&mut stmt, true) };
}

/// RESET ALL, and pg_advisory_unlock_all(), in a background worker's transaction: what DISCARD ALL
/// does with what a security-restricted operation can leave.
pub(crate) fn discard_locks_and_settings() {
    // SAFETY: within a transaction. The session's user and role are not among the settings that are
    // reset together.
    unsafe {
        pg_sys::LockReleaseAll(pg_sys::USER_LOCKMETHOD as pg_sys::LOCKMETHODID, true);
        pg_sys::ResetAllOptions();
    }
}

/// Whether a reload of the configuration files is pending.
pub(crate) fn is_reload_asked() -> bool {
    // SAFETY: reads a flag that a signal handler sets.
    unsafe { pg_sys::ConfigReloadPending != 0 }
}

/// Reloads the configuration files if that is pending; true if it was.
pub(crate) fn reload_if_asked() -> bool {
    // SAFETY: a worker's main loop, outside any transaction.
    unsafe {
        let asked = is_reload_asked();
        if asked {
            pg_sys::ConfigReloadPending = 0;
            pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP);
        }
        asked
    }
}

/// Whether the session's `search_path` is empty, as pg_dump's scripts set it.
pub(crate) fn has_empty_search_path() -> bool {
    // SAFETY: PostgreSQL keeps the setting's text, a C string, in this variable, which only this process writes.
    unsafe { CStr::from_ptr(pg_sys::namespace_search_path).is_empty() }
}

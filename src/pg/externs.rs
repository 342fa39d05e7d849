//! C functions that pgrx does not bind, or whose bindings wrap each call.
//!
//! pgrx's bindings put a `sigsetjmp` around every call, so that an error becomes
//! a Rust panic. Two kinds of callers need the plain function instead: code that
//! runs once a row and calls only functions that cannot raise errors, and the
//! trampolines of hooks (see `docs/decisions/0004-unguarded-trampolines.md`).

use core::ffi::{c_char, c_int, c_void};
use pgrx::pg_sys;

unsafe extern "C-unwind" {
    /// xact.c; cannot fail.
    pub(crate) fn GetCurrentStatementStartTimestamp() -> pg_sys::TimestampTz;
    /// xact.c; cannot fail.
    pub(crate) fn GetCurrentTransactionStartTimestamp() -> pg_sys::TimestampTz;

    /// miscinit.c; cannot fail.
    pub(crate) fn InNoForceRLSOperation() -> bool;
    /// timestamp.c; cannot fail.
    pub(crate) fn GetCurrentTimestamp() -> pg_sys::TimestampTz;
    /// mcxt.c; raises an error when memory is exhausted.
    pub(crate) fn MemoryContextAlloc(context: pg_sys::MemoryContext, size: usize) -> *mut c_void;

    /// planner.c; for the planner hook's trampoline.
    pub(crate) fn standard_planner(
        parse: *mut pg_sys::Query,
        query_string: *const c_char,
        cursor_options: c_int,
        bound_params: pg_sys::ParamListInfo,
    ) -> *mut pg_sys::PlannedStmt;

    /// utility.c; for the utility hook's trampoline.
    pub(crate) fn standard_ProcessUtility(
        pstmt: *mut pg_sys::PlannedStmt,
        query_string: *const c_char,
        read_only_tree: bool,
        context: pg_sys::ProcessUtilityContext::Type,
        params: pg_sys::ParamListInfo,
        query_env: *mut pg_sys::QueryEnvironment,
        dest: *mut pg_sys::DestReceiver,
        qc: *mut pg_sys::QueryCompletion,
    );
}

/// Functions that can raise errors; call through [`crate::pg::catalog`].
pub(super) mod raising {
    use super::pg_sys;

    unsafe extern "C-unwind" {
        pub(crate) fn find_all_inheritors(
            parent: pg_sys::Oid,
            lockmode: pg_sys::LOCKMODE,
            numparents: *mut *mut pg_sys::List,
        ) -> *mut pg_sys::List;
        pub(crate) fn has_subclass(relation_id: pg_sys::Oid) -> bool;
        pub(crate) fn get_partition_parent(
            relid: pg_sys::Oid,
            even_if_detached: bool,
        ) -> pg_sys::Oid;
    }
}

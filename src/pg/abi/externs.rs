//! C functions that pgrx does not bind, or whose bindings wrap each call.
//!
//! pgrx's bindings wrap every call in a `sigsetjmp`, so that an error becomes a Rust panic. Two
//! kinds of callers need the function itself: code that runs once per row and calls only
//! functions that cannot raise errors, and hooks' trampolines
//! (`docs/decisions/0004-unguarded-trampolines.md`).

use core::ffi::{c_char, c_int, c_void};
use pgrx::pg_sys;

// Those that raise no error: no guard is needed, and what they read is the session's own.
bound! { "C"
    pub(crate) [safe] fn GetCurrentStatementStartTimestamp() -> pg_sys::TimestampTz;
    pub(crate) [safe] fn GetCurrentTransactionStartTimestamp() -> pg_sys::TimestampTz;
    pub(crate) [safe] fn GetCurrentTransactionNestLevel() -> c_int;
    pub(crate) [safe] fn GetOuterUserId() -> pg_sys::Oid;
    pub(crate) [safe] fn GetUserId() -> pg_sys::Oid;
    pub(crate) [safe] fn InLocalUserIdChange() -> bool;
    pub(crate) [safe] fn InNoForceRLSOperation() -> bool;
    pub(crate) [safe] fn InSecurityRestrictedOperation() -> bool;
    pub(crate) [safe] fn GetCurrentTimestamp() -> pg_sys::TimestampTz;
    pub(crate) [safe] fn IsLogicalWorker() -> bool;
    /// hashfn.c; reads `count` bytes.
    pub(crate) fn hash_bytes(bytes: *const u8, count: c_int) -> u32;
    pub(crate) [safe] fn GetTopTransactionIdIfAny() -> pg_sys::TransactionId;
    pub(crate) fn MemoryContextRegisterResetCallback(
        context: pg_sys::MemoryContext,
        callback: *mut pg_sys::MemoryContextCallback,
    );
}

unsafe extern "C-unwind" {
    /// elog.c; a format and its arguments.
    pub(crate) fn errcontext_msg(format: *const c_char, ...) -> c_int;
    /// elog.c; likewise.
    pub(crate) fn errhint(format: *const c_char, ...) -> c_int;
}

bound! { "C-unwind"
    /// mcxt.c; raises an error when memory is exhausted.
    pub(crate) fn MemoryContextAlloc(context: pg_sys::MemoryContext, size: usize) -> *mut c_void;

    /// xact.c; fails only in a parallel operation.
    pub(crate) fn GetCurrentCommandId(used: bool) -> pg_sys::CommandId;
    /// snapmgr.c; cannot fail while a query runs.
    pub(crate) fn GetActiveSnapshot() -> pg_sys::Snapshot;
    /// fmgr.c; for receivers of rows.
    pub(crate) fn pg_detoast_datum(datum: *mut pg_sys::varlena) -> *mut pg_sys::varlena;
    /// fmgr.c; raises an error when memory is exhausted, or a TOAST table is damaged.
    pub(crate) fn pg_detoast_datum_packed(datum: *mut pg_sys::varlena) -> *mut pg_sys::varlena;
    /// tuplestore.c; likewise.
    pub(crate) fn tuplestore_puttuple(store: *mut pg_sys::Tuplestorestate, row: pg_sys::HeapTuple);
    /// elog.c; of the error that is being reported.
    pub(crate) fn geterrcode() -> c_int;
    /// elog.c; null is PostgreSQL's own.
    pub(crate) fn set_errcontext_domain(domain: *const c_char) -> c_int;
    /// postgres.c; as a handler of SIGTERM.
    pub(crate) fn die(signal: c_int, #[cfg(since19)] sender: *const pg_sys::pg_signal_info);
    /// interrupt.c; as a handler of SIGHUP.
    pub(crate) fn SignalHandlerForConfigReload(
        signal: c_int,
        #[cfg(since19)] sender: *const pg_sys::pg_signal_info,
    );

    /// costsize.c; for the planner support function.
    pub(crate) fn cost_qual_eval_node(
        cost: *mut pg_sys::QualCost,
        qual: *mut pg_sys::Node,
        root: *mut pg_sys::PlannerInfo,
    );

    /// planner.c; for the planner hook's trampoline.
    pub(crate) fn standard_planner(
        parse: *mut pg_sys::Query,
        query_string: *const c_char,
        cursor_options: c_int,
        bound_params: pg_sys::ParamListInfo,
        #[cfg(since19)] explain: *mut pg_sys::ExplainState,
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

/// timeout.h, which pgrx does not bind.
pub(crate) mod timeout {
    use core::ffi::c_int;

    /// `DEADLOCK_TIMEOUT`, a `TimeoutId`.
    pub(crate) const DEADLOCK_TIMEOUT: c_int = 1;

    /// `USER_TIMEOUT`, the first free `TimeoutId`.
    #[cfg(not(since17))]
    pub(crate) const USER_TIMEOUT: c_int = 12;
    /// `USER_TIMEOUT`, the first free `TimeoutId`.
    #[cfg(since17)]
    pub(crate) const USER_TIMEOUT: c_int = 13;

    // Those raise no error.
    unsafe extern "C" {
        /// For `USER_TIMEOUT` it allots a new ID and returns that; FATAL if none is left.
        pub(crate) fn RegisterTimeout(id: c_int, handler: extern "C-unwind" fn()) -> c_int;
        /// First at `fin_time`, then repeatedly.
        pub(crate) fn enable_timeout_every(
            id: c_int,
            fin_time: pgrx::pg_sys::TimestampTz,
            delay_ms: c_int,
        );
        /// When it was last enabled, even if it has ended.
        pub(crate) safe fn get_timeout_start_time(id: c_int) -> pgrx::pg_sys::TimestampTz;
        pub(crate) fn disable_timeout(id: c_int, keep_indicator: bool);
    }
}

/// When this session last began to wait for a heavyweight lock, which starts the deadlock
/// timeout; 0: never.
pub(crate) fn last_wait() -> i64 {
    timeout::get_timeout_start_time(timeout::DEADLOCK_TIMEOUT)
}

/// Functions that can raise errors: call them inside `pg_guard_ffi_boundary`.
pub(crate) mod raising {
    use super::pg_sys;
    use core::ffi::{c_int, c_void};

    bound! { "C-unwind"
        pub(crate) fn makeVar(
            varno: c_int,
            attno: pg_sys::AttrNumber,
            type_oid: pg_sys::Oid,
            typmod: i32,
            collation: pg_sys::Oid,
            levels_up: pg_sys::Index,
        ) -> *mut pg_sys::Var;
        pub(crate) fn makeConst(
            type_oid: pg_sys::Oid,
            typmod: i32,
            collation: pg_sys::Oid,
            length: c_int,
            value: pg_sys::Datum,
            is_null: bool,
            by_value: bool,
        ) -> *mut pg_sys::Const;
        pub(crate) fn makeFuncExpr(
            function: pg_sys::Oid,
            result: pg_sys::Oid,
            args: *mut pg_sys::List,
            collation: pg_sys::Oid,
            input_collation: pg_sys::Oid,
            format: pg_sys::CoercionForm::Type,
        ) -> *mut pg_sys::FuncExpr;
        pub(crate) fn bms_is_member(x: c_int, a: *const pg_sys::Bitmapset) -> bool;
        #[cfg(not(since16))]
        pub(crate) fn make_restrictinfo(
            root: *mut pg_sys::PlannerInfo,
            clause: *mut pg_sys::Expr,
            is_pushed_down: bool,
            outerjoin_delayed: bool,
            pseudoconstant: bool,
            security_level: pg_sys::Index,
            required_relids: pg_sys::Relids,
            outer_relids: pg_sys::Relids,
            nullable_relids: pg_sys::Relids,
        ) -> *mut pg_sys::RestrictInfo;
        #[cfg(since16)]
        pub(crate) fn make_restrictinfo(
            root: *mut pg_sys::PlannerInfo,
            clause: *mut pg_sys::Expr,
            is_pushed_down: bool,
            has_clone: bool,
            is_clone: bool,
            pseudoconstant: bool,
            security_level: pg_sys::Index,
            required_relids: pg_sys::Relids,
            incompatible_relids: pg_sys::Relids,
            outer_relids: pg_sys::Relids,
        ) -> *mut pg_sys::RestrictInfo;
        pub(crate) fn lcons(datum: *mut c_void, list: *mut pg_sys::List) -> *mut pg_sys::List;
        pub(crate) fn lappend(list: *mut pg_sys::List, datum: *mut c_void) -> *mut pg_sys::List;
    }
}

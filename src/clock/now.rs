//! `ttl.now()` and `ttl.current_ts()`.

use super::{execution, parallel};
use crate::pg::{externs, fmgr};
use crate::policy;
use pgrx::pg_sys;

/// The time against which rows expire: that at which the query began that is running, or
/// that of the statement ([`statement_now`]).
#[inline]
pub(crate) fn now() -> i64 {
    execution::time().unwrap_or_else(statement_now)
}

/// The statement's start, or the transaction's start where the transaction keeps one
/// snapshot (REPEATABLE READ, SERIALIZABLE), so that nothing vanishes inside a snapshot. In
/// a procedure that commits, transactions start later than the statement: a procedure that
/// never ends must see rows expire, too. Parallel workers go by their leader's query.
pub(super) fn statement_now() -> i64 {
    if let Some(time) = parallel::leaders_time() {
        return time;
    }
    // SAFETY: backend-local variables; the functions cannot fail.
    unsafe {
        let transaction = externs::GetCurrentTransactionStartTimestamp();
        if pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ.cast_signed() {
            return transaction;
        }
        externs::GetCurrentStatementStartTimestamp().max(transaction)
    }
}

/// The time with which rows are stamped ([`policy::stamp`]), in every isolation
/// level. Not [`now`]: a long REPEATABLE READ transaction would write rows that
/// are born expired.
fn stamp(statement_start: i64) -> i64 {
    policy::stamp(statement_start, externs::GetCurrentTimestamp())
}

/// The stamp of a row that is written now.
pub(crate) fn present_stamp() -> i64 {
    stamp(externs::GetCurrentStatementStartTimestamp())
}

/// A stamp that is kept for the rest of an execution, or until it has to wait for a lock.
struct Kept {
    statement_start: i64,
    /// When this session had last begun to wait for a lock.
    waited: i64,
    stamp: i64,
}

fmgr::finfo_v1!(pg_finfo_ttl_now, pg_finfo_ttl_current_ts);

/// `ttl.now() RETURNS timestamptz`.
///
/// # Safety
/// Called by PostgreSQL's function manager.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_now(_fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    pg_sys::Datum::from(now())
}

/// `ttl.current_ts() RETURNS timestamptz`.
///
/// The same for all rows of one execution: it is kept with the call's place in
/// the expression, which lives as long, but in PL/pgSQL as long as the
/// transaction; so it is never kept for another statement of the client. Nor is it
/// where the execution has waited for somebody's lock: rows would be born old.
/// Unguarded: an error for want of memory passes a frame with nothing to drop.
///
/// # Safety
/// Called by PostgreSQL's function manager.
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_current_ts(
    fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: fn_extra is ours to use, and what it points to is of our type.
    unsafe {
        let statement_start = externs::GetCurrentStatementStartTimestamp();
        let Some(call) = (*fcinfo).flinfo.as_mut() else {
            return pg_sys::Datum::from(stamp(statement_start));
        };
        let waited = externs::last_wait();
        let first = call.fn_extra.is_null();
        if first {
            call.fn_extra = externs::MemoryContextAlloc(call.fn_mcxt, size_of::<Kept>());
        }
        let kept = call.fn_extra.cast::<Kept>();
        if first || (*kept).statement_start != statement_start || (*kept).waited != waited {
            kept.write(Kept {
                statement_start,
                waited,
                stamp: stamp(statement_start),
            });
        }
        pg_sys::Datum::from((*kept).stamp)
    }
}

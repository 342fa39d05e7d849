//! `ttl.now()` and `ttl.current_ts()`.

use crate::pg::{externs, fmgr};
use crate::policy;
use pgrx::pg_sys;

/// The time against which rows expire: the statement's start, or the
/// transaction's start where the transaction keeps one snapshot (REPEATABLE
/// READ, SERIALIZABLE), so that nothing vanishes inside a snapshot.
#[inline]
pub(crate) fn now() -> i64 {
    // SAFETY: backend-local variables; the functions cannot fail. Parallel
    // workers get both times and the isolation level from their leader.
    unsafe {
        if pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ.cast_signed() {
            externs::GetCurrentTransactionStartTimestamp()
        } else {
            externs::GetCurrentStatementStartTimestamp()
        }
    }
}

/// The time with which rows are stamped: the statement's start in every
/// isolation level, cut to whole seconds. Not [`now`]: a long REPEATABLE READ
/// transaction would write rows that are born expired.
fn stamp() -> i64 {
    // SAFETY: reads a backend-local variable.
    policy::truncate_to_second(unsafe { externs::GetCurrentStatementStartTimestamp() })
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
/// # Safety
/// Called by PostgreSQL's function manager.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_current_ts(
    _fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    pg_sys::Datum::from(stamp())
}

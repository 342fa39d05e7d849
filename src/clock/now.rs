//! `ttl.now()` and `ttl.current_ts()`.

use super::execution;
use super::statement_time::statement_now;
use crate::pg::abi::{externs, fmgr};
use crate::pg::exec::call::Call;
use crate::policy;
use pgrx::pg_sys;

/// The time against which rows expire: the running query's, or else the statement's
/// ([`statement_now`]).
#[inline]
pub(crate) fn now() -> i64 {
    execution::time().unwrap_or_else(statement_now)
}

/// The time with which rows are stamped ([`policy::stamp`]), in every isolation level. Not
/// [`now`]: a long REPEATABLE READ transaction would write rows that are already expired.
fn stamp(statement_start: i64) -> i64 {
    policy::stamp(statement_start, externs::GetCurrentTimestamp())
}

/// The stamp of a row that is written now.
pub(crate) fn present_stamp() -> i64 {
    stamp(externs::GetCurrentStatementStartTimestamp())
}

/// A stamp that is kept until the query ends or waits for a lock.
#[derive(Clone, Copy)]
struct KeptStamp {
    statement_start: i64,
    /// When this session had last begun to wait for a lock.
    waited: i64,
    stamp: i64,
}

fmgr::finfo_v1!(
    pg_finfo_ttl_now,
    pg_finfo_ttl_current_ts,
    pg_finfo_ttl_refreshed_ts
);

/// `ttl.now() RETURNS timestamptz`.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_now(_fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    pg_sys::Datum::from(now())
}

/// `ttl.current_ts() RETURNS timestamptz`.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_current_ts(call: Call<'_, ()>) -> pg_sys::Datum {
    pg_sys::Datum::from(stamp_of_call(call))
}

/// `ttl.refreshed_ts(ts timestamptz, ttl integer, granularity integer) RETURNS timestamptz`: what
/// an UPDATE writes into a row that has these (C16, [`policy::refreshed`]).
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_refreshed_ts(call: Call<'_, (i64, i32, i32)>) -> pg_sys::Datum {
    let (ts, ttl, granularity) = call.args();
    let present = stamp_of_call(call);
    pg_sys::Datum::from(policy::refreshed(
        ts,
        ttl,
        granularity.unwrap_or(0),
        present,
    ))
}

/// The same for all rows of a query: the stamp is kept in the call's `fn_extra`, which lives as
/// long. In PL/pgSQL it lives as long as the transaction, so a stamp never serves another
/// statement of the client; nor after a wait for a lock, where rows would be stamped with an old
/// time. Unguarded: an error for want of memory passes a frame with nothing to drop.
fn stamp_of_call<A>(call: Call<'_, A>) -> i64 {
    let statement_start = externs::GetCurrentStatementStartTimestamp();
    let waited = externs::last_wait();
    let present = || KeptStamp {
        statement_start,
        waited,
        stamp: stamp(statement_start),
    };
    // SAFETY: `fn_extra` of these functions holds this type, and nothing else.
    let Some(kept) = (unsafe { call.kept(|_| present()) }) else {
        return stamp(statement_start);
    };
    let former = kept.get();
    if former.statement_start != statement_start || former.waited != waited {
        kept.set(present());
    }
    kept.get().stamp
}

//! The functions of restrictions and constraints. They run for every row: C functions without
//! argument wrapping, which cannot raise errors.

use crate::clock::moment;
use crate::clock::now::now;
use crate::pg::abi::report::or_raise;
use crate::pg::abi::{externs, fmgr};
use crate::pg::catalog::{self, roles};
use crate::pg::exec::call::Call;
use crate::policy::{self, Policy};
use pgrx::pg_sys::{self, Oid};
use pgrx::prelude::*;

fmgr::finfo_v1!(
    pg_finfo_ttl_live_override,
    pg_finfo_ttl_live_default,
    pg_finfo_ttl_cutoff,
    pg_finfo_ttl_reads_physically,
    pg_finfo_ttl_expires_at,
    pg_finfo_ttl_expiry_key,
    pg_finfo_ttl_is_override,
);

/// The time by which the call judges a row.
#[inline]
pub(super) fn time_of<A>(call: &Call<'_, A>) -> i64 {
    // SAFETY: these functions leave `fn_extra` to `of_call`.
    unsafe { moment::of_call(call) }
}

/// `ttl.live(ts timestamptz, ttl integer, default_ttl integer) RETURNS boolean` (C5).
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_live_override(
    call: Call<'_, (i64, i32, i32)>,
) -> pg_sys::Datum {
    let (ts, ttl, default) = call.args();
    let ttl = policy::effective_ttl(ttl, default);
    pg_sys::Datum::from(policy::is_live(ts, ttl, time_of(&call)))
}

/// `ttl.live(ts timestamptz, default_ttl integer) RETURNS boolean` (C5), for a
/// table without overrides.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_live_default(call: Call<'_, (i64, i32)>) -> pg_sys::Datum {
    let (ts, default) = call.args();
    let ttl = policy::effective_ttl(None, default);
    pg_sys::Datum::from(policy::is_live(ts, ttl, time_of(&call)))
}

/// `ttl.cutoff(default_ttl integer) RETURNS timestamptz`: rows with a `_ts` up to this are
/// expired. STRICT.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_cutoff(call: Call<'_, (i32,)>) -> pg_sys::Datum {
    let (seconds,) = call.args();
    pg_sys::Datum::from(policy::cutoff(now(), seconds.unwrap_or(0)))
}

/// `ttl.reads_physically(relation oid) RETURNS boolean`: whether the current user reads the
/// table as it is on disk, asked at execution. STRICT. Raises no error for an OID of no table.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_reads_physically(call: Call<'_, (Oid,)>) -> pg_sys::Datum {
    // Only the rare case needs the guard.
    if roles::is_row_security_off() {
        reads_physically(call)
    } else {
        pg_sys::Datum::from(false)
    }
}

#[pg_guard]
extern "C-unwind" fn reads_physically(call: Call<'_, (Oid,)>) -> pg_sys::Datum {
    let (relid,) = call.args();
    let exists = |relid: &Oid| catalog::class(*relid).is_some();
    let physical = !externs::InSecurityRestrictedOperation()
        && relid.filter(exists).is_some_and(roles::reads_physically);
    pg_sys::Datum::from(physical)
}

/// `ttl.expires_at(ts, ttl, default_ttl) RETURNS timestamptz`; 'infinity' =
/// never. `default_ttl` NULL: no default. Raises 22023 for a default that C2 refuses.
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_expires_at(call: Call<'_, (i64, i32, i32)>) -> pg_sys::Datum {
    let (ts, ttl, default) = call.args();
    or_raise(default.map(Policy::check_default_ttl).transpose());
    pg_sys::Datum::from(policy::expires_at(ts, policy::effective_ttl(ttl, default)))
}

/// `ttl.expiry_key(ts timestamptz, ttl integer) RETURNS bigint` (C11); NULL = never. Raises nothing.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_expiry_key(call: Call<'_, (i64, i32)>) -> pg_sys::Datum {
    let (ts, ttl) = call.args();
    match policy::expiry_key(ts, ttl) {
        Some(key) => pg_sys::Datum::from(key),
        None => call.null(),
    }
}

/// `ttl.is_override(ttl integer) RETURNS boolean` (C3). STRICT.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_is_override(call: Call<'_, (i32,)>) -> pg_sys::Datum {
    let (ttl,) = call.args();
    pg_sys::Datum::from(ttl.is_none_or(policy::is_override))
}

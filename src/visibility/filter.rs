//! The functions of restrictions and constraints. They run for every row: C functions without
//! argument wrapping, which cannot raise errors.

use crate::clock::moment;
use crate::clock::now::now;
use crate::error::Error;
use crate::pg::fmgr::{self, arg, arg_int4, arg_timestamptz};
use crate::pg::{catalog, roles};
use crate::policy;
use pgrx::pg_sys;
use pgrx::prelude::*;

fmgr::finfo_v1!(
    pg_finfo_ttl_live_override,
    pg_finfo_ttl_live_default,
    pg_finfo_ttl_cutoff,
    pg_finfo_ttl_reads_physically,
    pg_finfo_ttl_expires_at,
    pg_finfo_ttl_is_override,
);

/// `ttl.live(ts timestamptz, ttl integer, default_ttl integer) RETURNS boolean` (C5).
///
/// # Safety
/// Called by PostgreSQL's function manager with three arguments.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_live_override(
    fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: as declared in SQL.
    let (ts, ttl, now) = unsafe {
        (
            arg_timestamptz(fcinfo, 0),
            policy::effective_ttl(arg_int4(fcinfo, 1), arg_int4(fcinfo, 2)),
            moment::of_call(fcinfo),
        )
    };
    pg_sys::Datum::from(policy::is_live(ts, ttl, now))
}

/// `ttl.live(ts timestamptz, default_ttl integer) RETURNS boolean` (C5), for a
/// table without overrides.
///
/// # Safety
/// Called by PostgreSQL's function manager with two arguments.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_live_default(
    fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: as declared in SQL.
    let (ts, ttl, now) = unsafe {
        (
            arg_timestamptz(fcinfo, 0),
            policy::effective_ttl(None, arg_int4(fcinfo, 1)),
            moment::of_call(fcinfo),
        )
    };
    pg_sys::Datum::from(policy::is_live(ts, ttl, now))
}

/// `ttl.cutoff(default_ttl integer) RETURNS timestamptz`: rows with a `_ts` up to this are
/// expired. STRICT.
///
/// # Safety
/// Called by PostgreSQL's function manager with one argument.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_cutoff(
    fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: as declared in SQL.
    let seconds = unsafe { arg_int4(fcinfo, 0) }.unwrap_or(0);
    pg_sys::Datum::from(policy::cutoff(now(), seconds))
}

/// `ttl.reads_physically(relation oid) RETURNS boolean`: whether the current user reads the
/// table as it is on disk, asked at execution. STRICT. As it is LEAKPROOF, it raises no error
/// for an OID of no table.
///
/// # Safety
/// Called by PostgreSQL's function manager with one argument.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_reads_physically(
    fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: as declared in SQL; reads a backend-local variable. Only the rare case needs the
    // guard.
    unsafe {
        if pg_sys::row_security {
            return pg_sys::Datum::from(false);
        }
        reads_physically(fcinfo)
    }
}

/// # Safety
/// As [`ttl_reads_physically`].
#[pg_guard]
unsafe extern "C-unwind" fn reads_physically(fcinfo: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: as declared in SQL; the rest reads a backend-local variable.
    let (relid, restricted) = unsafe {
        let relid = arg(fcinfo, 0).map(|relid| pg_sys::Oid::from(relid.value() as u32));
        (relid, pg_sys::InSecurityRestrictedOperation())
    };
    let exists = |relid: &pg_sys::Oid| catalog::class(*relid).is_some();
    let physical = !restricted && relid.filter(exists).is_some_and(roles::reads_physically);
    pg_sys::Datum::from(physical)
}

/// `ttl.expires_at(ts, ttl, default_ttl) RETURNS timestamptz`; 'infinity' =
/// never. `default_ttl` NULL: no default. Raises 22023 for a default that C2 refuses.
///
/// # Safety
/// Called by PostgreSQL's function manager with three arguments.
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_expires_at(
    fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: as declared in SQL.
    let (ts, ttl, default) = unsafe {
        (
            arg_timestamptz(fcinfo, 0),
            arg_int4(fcinfo, 1),
            arg_int4(fcinfo, 2),
        )
    };
    if let Some(default) = default.filter(|&d| d == 0 || d < -1) {
        Error::invalid_default_ttl(i64::from(default)).raise();
    }
    pg_sys::Datum::from(policy::expires_at(ts, policy::effective_ttl(ttl, default)))
}

/// `ttl.is_override(ttl integer) RETURNS boolean` (C3). STRICT.
///
/// # Safety
/// Called by PostgreSQL's function manager with one argument.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_is_override(
    fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: as declared in SQL.
    let ttl = unsafe { arg_int4(fcinfo, 0) };
    pg_sys::Datum::from(ttl.is_none_or(policy::is_override))
}

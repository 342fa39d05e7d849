//! `ttl.is_live`: whether a row is not expired.

use super::remaining::{by_policy, table_of};
use crate::clock::now::now;
use crate::error::Result;
use crate::pg::abi::fmgr;
use crate::pg::abi::report::or_raise;
use crate::pg::exec::call::Call;
use crate::pg::exec::composite::{Columns, Record};
use crate::store::cache;
use pgrx::pg_sys;
use pgrx::prelude::*;

fmgr::finfo_v1!(pg_finfo_ttl_is_live);

/// `ttl.is_live(rec record) RETURNS boolean`: whether a row of a table is not expired, by the
/// table's policy and the time of the statement (C31). What is no row, of the nullable side of a
/// join, is not expired; nor is a row of a table without a policy. Where the planner can, it replaces
/// the call (`visibility/live_support.rs`).
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_is_live(call: Call<'_, (Record<'_>,)>) -> pg_sys::Datum {
    let (row,) = call.args();
    let live = row.is_none_or(|row| or_raise(row.with(is_live)));
    pg_sys::Datum::from(live)
}

fn is_live(row: &Columns<'_>) -> Result<bool> {
    let relid = table_of(row, "ttl.is_live()")?;
    let policy = cache::policy(relid).filter(|policy| policy.expires());
    Ok(policy.is_none_or(|policy| by_policy(&policy, row) > now()))
}

//! `ttl.pause`.

use super::{guard, write_label};
use crate::error::{Error, Result};
use crate::pg::abi::fmgr;
use crate::pg::abi::report::or_raise;
use crate::pg::catalog;
use crate::pg::exec::call::Call;
use crate::pg::server::background;
use crate::policy::PauseEnd;
use pgrx::pg_sys;
use pgrx::prelude::*;

fmgr::finfo_v1!(pg_finfo_ttl_pause);

/// `ttl.pause(rel regclass, until timestamptz) RETURNS void` (C29): background deletion of the
/// table waits until then, or until `ttl.resume`.
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_pause(call: Call<'_, (pg_sys::Oid, i64)>) -> pg_sys::Datum {
    guard::check_writable(c"ttl.pause()");
    let (rel, until) = call.args();
    or_raise(pause(rel, until));
    pg_sys::Datum::null()
}

fn pause(rel: Option<pg_sys::Oid>, until: Option<i64>) -> Result<()> {
    let relid = guard::required(rel, "rel")?;
    let until = guard::required(until, "until")?;
    guard::check_change(relid)?;
    guard::lock(relid, pg_sys::ShareUpdateExclusiveLock);
    let mut policy = guard::present_policy(relid)?;
    if until <= background::now() {
        return Err(in_the_past(relid));
    }
    policy.paused_until = Some(PauseEnd::at(until));
    write_label::write(relid, &policy);
    Ok(())
}

fn in_the_past(relid: pg_sys::Oid) -> Error {
    let table = catalog::quote_literal(&catalog::qualified_name(relid));
    Error::invalid("a pause must end in the future")
        .detail("The time that was given has passed.")
        .hint(format!("To end a pause, run: SELECT ttl.resume({table});"))
}

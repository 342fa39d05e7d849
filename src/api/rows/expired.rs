//! `ttl.expired`: the rows of a table that have expired and are still on disk.

use crate::api::policy::{cluster, guard};
use crate::deletion::job::Job;
use crate::error::{Error, Result};
use crate::pg::abi::fmgr;
use crate::pg::abi::report::or_raise;
use crate::pg::catalog;
use crate::pg::exec::query::Sql;
use crate::pg::exec::returned_rows::SetCall;
use crate::visibility::planned_statement;
use pgrx::pg_sys;
use pgrx::prelude::*;

fmgr::finfo_v1!(pg_finfo_ttl_expired);

/// `ttl.expired(rel anyelement) RETURNS SETOF anyelement` (C25): of the table of whose row type the
/// argument is, which is usually NULL; to its owner, with row-level security as for its owner.
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_expired(call: SetCall<'_>) -> pg_sys::Datum {
    or_raise(select(&call));
    call.end()
}

fn select(call: &SetCall<'_>) -> Result<()> {
    let relid = call
        .relation()
        .filter(|&relid| catalog::is_table(relid))
        .ok_or_else(not_a_row)?;
    guard::check_owner(relid)?;
    let hint = "Ask a shard where it is: SELECT * FROM ttl.expired(NULL::..._102008). ttl.preview() counts them in all.";
    cluster::refuse_on_shell(relid, "ttl.expired()", hint)?;
    guard::lock(relid, pg_sys::AccessShareLock);
    guard::governed(relid)?;
    // Where the policy is not in force, every row lives.
    if let Some(job) = Job::of(relid) {
        let query = job.select_expired();
        guard::reading(relid, |visit| {
            planned_statement::with_expired_rows_of(relid, || {
                call.return_from(visit, Sql::naming(&[relid], &query));
            });
        });
    }
    Ok(())
}

fn not_a_row() -> Error {
    Error::wrong_kind("ttl.expired() needs the row type of a table")
    .detail("The type of its argument tells the table, and which columns the result has; its value does not matter.")
    .hint("Write a NULL of the table's type: SELECT * FROM ttl.expired(NULL::sessions).")
}

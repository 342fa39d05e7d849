//! The planner support function of `ttl.is_live`: in views of live rows, and in conditions of
//! users, the call becomes the expression that hides rows.

use super::restriction;
use crate::pg::abi::fmgr;
use crate::pg::catalog::{self, expressions};
use crate::pg::exec::call::Call;
use crate::pg::plan::support::Request;
use crate::store::{Rule, cache, extension};
use pgrx::pg_sys;
use pgrx::prelude::*;

fmgr::finfo_v1!(pg_finfo_ttl_is_live_support);

/// `ttl_internal.is_live_support(internal) RETURNS internal`: replaces `ttl.is_live(row)` by the condition on
/// the columns of the row's table, if the query reads that itself. The plan is made again when the
/// policy changes, as any on that table. Elsewhere the function looks at the row.
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_is_live_support(
    call: Call<'_, (Request<'_>,)>,
) -> pg_sys::Datum {
    let (request,) = call.args();
    let replacement = request.and_then(|request| {
        let entry = request.of_whole_row()?;
        let relid = entry.table()?;
        let functions = extension::functions()?;
        // Rows of a view say nothing: the function raises the error.
        catalog::class(relid).filter(catalog::Class::is_table)?;
        let Some(policy) = cache::policy(relid).filter(|policy| policy.expires()) else {
            return Some(expressions::and(&[]));
        };
        if policy.rules.iter().any(Rule::runs_others_functions) {
            request.mind_parallel_hazards();
        }
        Some(restriction::live_condition(
            &functions,
            &policy,
            entry.varno(),
        ))
    });
    replacement.map_or(pg_sys::Datum::null(), pg_sys::Datum::from)
}

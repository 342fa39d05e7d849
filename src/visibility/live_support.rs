//! The planner support functions of `ttl.live`, the filter, and of `ttl.is_live`: in views of live rows, and in
//! conditions of users, that call becomes the expression that hides rows.

use super::restriction;
use crate::pg::abi::{externs, fmgr};
use crate::pg::catalog::{self, expressions};
use crate::pg::exec::call::Call;
use crate::pg::plan::planned_table::FILTER_SELECTIVITY;
use crate::pg::plan::support::Request;
use crate::store::{Rule, cache, extension};
use pgrx::pg_sys::{self, NodeTag, SupportRequestCost, SupportRequestSelectivity};
use pgrx::prelude::*;

fmgr::finfo_v1!(pg_finfo_ttl_live_support, pg_finfo_ttl_is_live_support);

/// By much more than the rounding error of a sum.
const SURELY: f64 = 1.0 + 1e-9;

/// `ttl_internal.live_support(internal) RETURNS internal`.
///
/// Without it a boolean function selects 1/3 of the rows. The cost is zero not because the
/// function is free, but because conditions of equal security level are evaluated in the order
/// of cost: no user can declare a lower one, so no other function is called with an expired row.
/// The planner adds the arguments' cost, so that is subtracted here, and a trifle more: the sum
/// must not be rounded to above zero. Only for calls that the filter makes: in a user's call the
/// arguments can be functions of theirs.
///
/// Unguarded, with nothing to drop.
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_live_support(call: Call<'_, (Request<'_>,)>) -> pg_sys::Datum {
    let (Some(request),) = call.args() else {
        return call.null();
    };
    let request = request.as_ptr();
    // SAFETY: PostgreSQL passes a support request, a node whose tag is checked before it is read.
    unsafe {
        match expressions::tag(request) {
            Some(NodeTag::T_SupportRequestSelectivity) => {
                (*request.cast::<SupportRequestSelectivity>()).selectivity = FILTER_SELECTIVITY;
            }
            Some(NodeTag::T_SupportRequestCost) => {
                let cost = request.cast::<SupportRequestCost>();
                let mut arguments = pg_sys::QualCost::default();
                if expressions::is_filter_call((*cost).node.cast()) {
                    let list = (*(*cost).node.cast::<pg_sys::FuncExpr>()).args.cast();
                    externs::cost_qual_eval_node(&mut arguments, list, (*cost).root);
                }
                (*cost).startup = -arguments.startup * SURELY;
                (*cost).per_tuple = -arguments.per_tuple * SURELY;
            }
            _ => return pg_sys::Datum::null(),
        }
    }
    pg_sys::Datum::from(request)
}

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

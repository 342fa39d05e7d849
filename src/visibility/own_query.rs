//! Conditions in the extension's own queries, put in when these are planned.
//!
//! `ttl_internal.row_is_live`, `ttl_internal.row_is_kept`, `ttl_internal.rule_applies` and `ttl_internal.rule_timestamptz` and its like are replaced by
//! the expressions that hide rows, so
//! no predicate is written out and parsed again under some `search_path`. In any other query, or
//! if they are not replaced, they raise an error.

use super::{planned_statement, restriction, undo_condition};
use crate::error::Error;
use crate::pg::abi::values::Text;
use crate::pg::abi::{encoding, fmgr};
use crate::pg::catalog::expressions;
use crate::pg::exec::call::Call;
use crate::pg::plan::support::Request;
use crate::policy::Policy;
use crate::store::{Rule, TablePolicy, cache, extension};
use pgrx::pg_sys::{self, Expr};
use pgrx::prelude::*;
use std::rc::Rc;

fmgr::finfo_v1!(
    pg_finfo_ttl_row_is_live_support,
    pg_finfo_ttl_row_is_kept_support,
    pg_finfo_ttl_rule_applies_support,
    pg_finfo_ttl_rule_key_support,
    pg_finfo_ttl_own_query_only,
);

/// `ttl_internal.row_is_live_support(internal) RETURNS internal`: replaces
/// `ttl_internal.row_is_live(tableoid, default_ttl)` by the condition "the row is live".
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_row_is_live_support(
    call: Call<'_, (Request<'_>,)>,
) -> pg_sys::Datum {
    replace(call, |policy, varno, default| {
        let functions = extension::functions()?;
        let Some(policy) = policy else {
            return Some(expressions::and(&[]));
        };
        let default_ttl = (!default.constisnull).then(|| default.constvalue.value() as i32);
        let label = Policy {
            default_ttl,
            ..(*policy.label).clone()
        };
        let policy = TablePolicy {
            label: Rc::new(label),
            ..policy.clone()
        };
        Some(restriction::live_condition(&functions, &policy, varno))
    })
}

/// `ttl_internal.row_is_kept_support(internal) RETURNS internal`: replaces
/// `ttl_internal.row_is_kept(tableoid, seconds)` by the condition "the row is live, or has expired less than
/// a number of seconds ago" (C23).
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_row_is_kept_support(
    call: Call<'_, (Request<'_>,)>,
) -> pg_sys::Datum {
    replace(call, |policy, varno, seconds| {
        let functions = extension::functions()?;
        let Some(policy) = policy else {
            return Some(expressions::and(&[]));
        };
        let keep = (!seconds.constisnull).then(|| seconds.constvalue.value() as i32)?;
        Some(undo_condition::condition(&functions, policy, varno, keep))
    })
}

/// `ttl_internal.rule_applies_support(internal) RETURNS internal`: replaces
/// `ttl_internal.rule_applies(tableoid, index)` by the predicate of that TTL index (M4).
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_rule_applies_support(
    call: Call<'_, (Request<'_>,)>,
) -> pg_sys::Datum {
    replace(call, |policy, varno, name| {
        let Some(rule) = named(policy, name)? else {
            return Some(expressions::never());
        };
        Some(restriction::predicate(rule, varno).unwrap_or_else(|| expressions::and(&[])))
    })
}

/// `ttl_internal.rule_key_support(internal) RETURNS internal`: replaces `ttl_internal.rule_timestamptz(tableoid,
/// index)`, or that of another type, by the date of that TTL index (M14).
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_rule_key_support(
    call: Call<'_, (Request<'_>,)>,
) -> pg_sys::Datum {
    let (request,) = call.args();
    let Some(type_oid) = request.and_then(|request| request.result_type()) else {
        return pg_sys::Datum::null();
    };
    replace(call, |policy, varno, name| {
        let functions = extension::functions()?;
        let date =
            named(policy, name)?.map(|rule| restriction::given_date(&functions, rule, varno));
        let date = date.filter(|(kind, _)| kind.type_oid() == type_oid);
        Some(date.map_or_else(|| expressions::null(type_oid), |(_, date)| date))
    })
}

/// The rule that a constant names, if there is one. `None` for a NULL.
fn named<'p>(policy: Option<&'p TablePolicy>, name: &pg_sys::Const) -> Option<Option<&'p Rule>> {
    // SAFETY: SQL declares the function's argument as text.
    let name = unsafe {
        if !name.constisnull {
            encoding::check_given(name.constvalue);
        }
        Text::from_datum(name.constvalue, name.constisnull)?.0
    };
    let rules = policy.map_or(&[][..], |policy| &policy.rules);
    Some(rules.iter().find(|rule| rule.index == name))
}

/// `ttl_internal.row_is_live(oid, integer)`, `ttl_internal.row_is_kept(oid, integer)` and `ttl_internal.rule_applies(oid, text)`
/// themselves.
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_own_query_only(
    _fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    Error::unsupported("this function can be used only in the extension's own queries")
        .hint("Use ttl.preview() to count expired rows, and ttl.purge() to delete them.")
        .raise()
}

/// Replaces a call whose first argument is the `tableoid` of a table whose expired rows the
/// query sees, and whose second is a constant.
///
/// The policy is the one in force now: another session may have changed it since the query was
/// written. Nothing expires by a TTL index that is gone.
fn replace(
    call: Call<'_, (Request<'_>,)>,
    by: impl FnOnce(Option<&TablePolicy>, u32, &pg_sys::Const) -> Option<*mut Expr>,
) -> pg_sys::Datum {
    let (request,) = call.args();
    let replacement = request.and_then(|request| {
        let (entry, constant) = request.of_table_and_constant()?;
        let relid = entry.table()?;
        if !planned_statement::current().is_own_query_on(relid) {
            return None;
        }
        by(cache::policy(relid).as_deref(), entry.varno(), &constant)
    });
    replacement.map_or(pg_sys::Datum::null(), pg_sys::Datum::from)
}

//! Conditions in the extension's own queries, put in when these are planned.
//!
//! `ttl_internal.row_is_live`, `ttl_internal.row_is_kept`, `ttl_internal.rule_applies` and `ttl_internal.rule_timestamptz` and its like are replaced by
//! the expressions that hide rows, so
//! no predicate is written out and parsed again under some `search_path`. In any other query, or
//! if they are not replaced, they raise an error.

use super::{planned_statement, restriction};
use crate::error::Error;
use crate::pg::abi::values::Text;
use crate::pg::abi::{encoding, fmgr};
use crate::pg::catalog::expressions;
use crate::pg::exec::call::Call;
use crate::pg::plan::support::Request;
use crate::policy::Policy;
use crate::store::extension::{self, Functions};
use crate::store::{Rule, TablePolicy, cache};
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
        Some(undo_condition(&functions, policy, varno, keep))
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

/// The condition "the row is live, or has expired less than `seconds` ago", for range table entry
/// `varno`; `seconds` is above 0.
///
/// The instant at which the row expires takes the place of the time of its last modification, and
/// `seconds` that of its ttl: so code of triggers, which runs within a deletion, sees no other
/// time than ever.
fn undo_condition(
    functions: &Functions,
    policy: &TablePolicy,
    varno: u32,
    seconds: i32,
) -> *mut Expr {
    let timestamptz = pg_sys::TIMESTAMPTZOID;
    let kept = |expiry| {
        let arguments = [expiry, expressions::int4(Some(seconds))];
        expressions::filter_call(functions.live_default, &arguments)
    };
    let mut conditions = Vec::new();
    if let Some(clock) = policy.expiring_clock() {
        let ttl = clock.ttl.map_or_else(
            || expressions::int4(None),
            |ttl| expressions::var(varno, &ttl),
        );
        let arguments = [
            expressions::var(varno, &clock.ts),
            ttl,
            expressions::int4(policy.label.default_ttl),
        ];
        conditions.push(kept(expressions::call(
            functions.expires_at,
            timestamptz,
            &arguments,
        )));
    }
    for rule in &policy.rules {
        let (kind, date) = restriction::date(functions, rule, varno);
        let arguments = [date, expressions::int4(Some(rule.seconds))];
        let expires_at = functions.index_expires_at[kind.number()];
        let kept = kept(expressions::call(expires_at, timestamptz, &arguments));
        conditions.push(restriction::unless_excluded(functions, rule, varno, kept));
    }
    expressions::and(&conditions)
}

//! Conditions in the extension's own queries, put in when these are planned.
//!
//! `ttl.row_is_live` and `ttl.rule_applies` are replaced by the expressions that hide rows, so
//! no predicate is written out and parsed again under some `search_path`. In any other query, or
//! if they are not replaced, they raise an error.

use super::{restriction, statement};
use crate::error::Error;
use crate::pg::values::Text;
use crate::pg::{fmgr, lists, nodes};
use crate::store::{TablePolicy, cache, extension};
use pgrx::PgSqlErrorCode;
use pgrx::pg_sys::{self, Expr, NodeTag, SupportRequestSimplify};
use pgrx::prelude::*;

fmgr::finfo_v1!(
    pg_finfo_ttl_row_is_live_support,
    pg_finfo_ttl_rule_applies_support,
    pg_finfo_ttl_own_query_only,
);

/// `ttl.row_is_live_support(internal) RETURNS internal`: replaces
/// `ttl.row_is_live(tableoid, default_ttl)` by the condition "the row is live".
///
/// # Safety
/// Called by the planner with one pointer to a request node.
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_row_is_live_support(
    fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: as declared in SQL.
    unsafe {
        replace(fcinfo, |policy, varno, default| {
            let functions = extension::functions()?;
            let Some(policy) = policy else {
                return Some(nodes::and(&[]));
            };
            let default_ttl = (!default.constisnull).then(|| default.constvalue.value() as i32);
            let policy = TablePolicy {
                default_ttl,
                ..policy.clone()
            };
            Some(restriction::live_condition(&functions, &policy, varno))
        })
    }
}

/// `ttl.rule_applies_support(internal) RETURNS internal`: replaces
/// `ttl.rule_applies(tableoid, index)` by the predicate of that TTL index (M4).
///
/// # Safety
/// Called by the planner with one pointer to a request node.
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_rule_applies_support(
    fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: as declared in SQL.
    unsafe {
        replace(fcinfo, |policy, varno, name| {
            let name = Text::from_datum(name.constvalue, name.constisnull)?.0;
            let rules = policy.map_or(&[][..], |policy| &policy.rules);
            let Some(rule) = rules.iter().find(|rule| rule.index == name) else {
                return Some(pg_sys::makeBoolConst(false, false).cast());
            };
            Some(restriction::predicate(rule, varno).unwrap_or_else(|| nodes::and(&[])))
        })
    }
}

/// `ttl.row_is_live(oid, integer)` and `ttl.rule_applies(oid, text)` themselves.
///
/// # Safety
/// Called by PostgreSQL's function manager.
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_own_query_only(
    _fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    Error::new(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        "this function can be used only in the extension's own queries",
    )
    .hint("Use ttl.preview() to count expired rows, and ttl.purge() to delete them.")
    .raise()
}

/// Replaces a call whose first argument is the `tableoid` of a table whose expired rows the
/// query sees, and whose second is a constant.
///
/// The policy is the one in force now: another session may have changed it since the query was
/// written. Nothing expires by a TTL index that is gone.
///
/// # Safety
/// Called by the planner with one pointer to a request node.
unsafe fn replace(
    fcinfo: pg_sys::FunctionCallInfo,
    by: impl FnOnce(Option<&TablePolicy>, u32, &pg_sys::Const) -> Option<*mut Expr>,
) -> pg_sys::Datum {
    // SAFETY: the argument is a node, whose tag tells its type; so are those of the call.
    unsafe {
        let replacement = fmgr::arg(fcinfo, 0).and_then(|datum| {
            let request = datum.cast_mut_ptr::<SupportRequestSimplify>();
            if nodes::tag(request) != Some(NodeTag::T_SupportRequestSimplify) {
                return None;
            }
            let arguments = (*(*request).fcall).args;
            let row = lists::nth::<pg_sys::Var>(arguments, 0)?;
            let constant = lists::nth::<pg_sys::Const>(arguments, 1)?;
            let fits = nodes::tag(row) == Some(NodeTag::T_Var)
                && nodes::tag(constant) == Some(NodeTag::T_Const)
                && i32::from((*row).varattno) == pg_sys::TableOidAttributeNumber
                && (*row).varlevelsup == 0;
            let root = (*request).root.as_ref().filter(|_| fits)?;
            #[allow(
                clippy::unnecessary_cast,
                reason = "PostgreSQL 15 declares it unsigned, others signed"
            )]
            let varno = (*row).varno as u32;
            let entry =
                lists::nth::<pg_sys::RangeTblEntry>((*root.parse).rtable, varno.cast_signed() - 1)?;
            let is_own = (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION
                && statement::current().own_query_on == Some((*entry).relid);
            if !is_own {
                return None;
            }
            by(cache::policy((*entry).relid).as_deref(), varno, &*constant)
        });
        replacement.map_or(pg_sys::Datum::null(), |expression| {
            pg_sys::Datum::from(expression)
        })
    }
}

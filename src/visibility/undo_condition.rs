//! The condition by which deletion in the background keeps rows that have expired (C23).

use super::restriction;
use crate::pg::catalog::expressions;
use crate::store::TablePolicy;
use crate::store::extension::Functions;
use pgrx::pg_sys::{self, Expr};

/// The condition "the row is live, or has expired less than `seconds` ago", for range table entry
/// `varno`; `seconds` is above 0.
///
/// The instant at which the row expires takes the place of the time of its last modification, and
/// `seconds` that of its ttl: so code of triggers, which runs within a deletion, sees no other
/// time than ever.
pub(super) fn condition(
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

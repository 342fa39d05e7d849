//! The restriction that hides expired rows, as an expression.

use crate::pg::catalog::expressions;
use crate::pg::plan::planned_table::PlannedTable;
use crate::store::dates::DateKind;
use crate::store::extension::Functions;
use crate::store::{Clock, DateSource, Rule, TablePolicy};
use pgrx::pg_sys::{self, Expr};

/// The conditions of "the row is live", for range table entry `varno`; all must hold. Their cost is
/// zero, so `order_qual_clauses()` evaluates them first.
pub(super) fn each_live_condition(
    functions: &Functions,
    policy: &TablePolicy,
    varno: u32,
    mut take: impl FnMut(*mut Expr),
) {
    if let Some(clock) = policy.expiring_clock() {
        take(by_clock(functions, clock, policy.label.default_ttl, varno));
    }
    for rule in &policy.rules {
        take(by_rule(functions, rule, varno));
    }
}

/// All of [`each_live_condition`].
pub(super) fn live_conditions(
    functions: &Functions,
    policy: &TablePolicy,
    varno: u32,
) -> Vec<*mut Expr> {
    let mut conditions = Vec::new();
    each_live_condition(functions, policy, varno, |condition| {
        conditions.push(condition);
    });
    conditions
}

/// The condition "the row is live by all TTL indexes", as [`live_conditions`].
pub(crate) fn live_by_rules(functions: &Functions, policy: &TablePolicy, varno: u32) -> *mut Expr {
    let rules = policy.rules.iter();
    let conditions: Vec<_> = rules.map(|rule| by_rule(functions, rule, varno)).collect();
    expressions::and(&conditions)
}

/// All of [`live_conditions`] as one condition.
pub(super) fn live_condition(functions: &Functions, policy: &TablePolicy, varno: u32) -> *mut Expr {
    expressions::and(&live_conditions(functions, policy, varno))
}

/// The condition "the row is live, or locked by this transaction" (C15), as one of
/// [`each_live_condition`].
pub(super) fn live_or_locked(functions: &Functions, policy: &TablePolicy, varno: u32) -> *mut Expr {
    let live = live_condition(functions, policy, varno);
    let place = [expressions::table_oid(varno), expressions::ctid(varno)];
    let locked = expressions::filter_call(functions.locked_here, &place);
    expressions::filter_call(functions.evaluate_first, &[expressions::or(live, locked)])
}

/// C5.
fn by_clock(
    functions: &Functions,
    clock: Clock,
    default_ttl: Option<i32>,
    varno: u32,
) -> *mut Expr {
    match clock.ttl {
        Some(ttl) => {
            let columns = [clock.ts, ttl];
            expressions::filter_call_on(functions.live_override, varno, &columns, default_ttl)
        }
        None => {
            expressions::filter_call_on(functions.live_default, varno, &[clock.ts], default_ttl)
        }
    }
}

/// M2 to M4. Most rows are live by their date, so that comes first.
fn by_rule(functions: &Functions, rule: &Rule, varno: u32) -> *mut Expr {
    let (kind, date) = date(functions, rule, varno);
    let seconds = expressions::int4(Some(rule.seconds));
    let live = expressions::filter_call(functions.live_at[kind.number()], &[date, seconds]);
    unless_excluded(functions, rule, varno, live)
}

/// The date by which rows expire by the rule, and of which kind it is.
pub(super) fn date(functions: &Functions, rule: &Rule, varno: u32) -> (DateKind, *mut Expr) {
    let (kind, date) = given_date(functions, rule, varno);
    let Some(zone) = &rule.time_zone else {
        return (kind, date);
    };
    let arguments = [date, expressions::text(&zone.name)];
    let instant = functions.in_time_zone[kind.number()];
    let instant = expressions::call(instant, pg_sys::TIMESTAMPTZOID, &arguments);
    (DateKind::Timestamptz, instant)
}

/// The date as the row has it, in local time if the rule has a time zone.
pub(super) fn given_date(functions: &Functions, rule: &Rule, varno: u32) -> (DateKind, *mut Expr) {
    let column = match &rule.key {
        DateSource::Column(column, _) => expressions::var(varno, column),
        DateSource::Expression(expression) => {
            return (rule.date.kind, expression.simplified(varno));
        }
    };
    if !rule.date.is_array {
        return (rule.date.kind, column);
    }
    let earliest = functions.earliest[rule.date.kind.number()];
    let date = expressions::call(earliest, pg_sys::TIMESTAMPTZOID, &[column]);
    (DateKind::Timestamptz, date)
}

/// The condition `live`, for rows that the rule's predicate does not leave out (M4).
pub(super) fn unless_excluded(
    functions: &Functions,
    rule: &Rule,
    varno: u32,
    live: *mut Expr,
) -> *mut Expr {
    match predicate(rule, varno) {
        None => live,
        Some(predicate) => {
            let excluded = expressions::is_not_true(predicate);
            let live = if rule.guards_expression() {
                expressions::or(excluded, live)
            } else {
                expressions::or(live, excluded)
            };
            expressions::filter_call(functions.evaluate_first, &[live])
        }
    }
}

/// M4: the condition of rows that expire by the TTL index.
pub(super) fn predicate(rule: &Rule, varno: u32) -> Option<*mut Expr> {
    // From the index's catalog entry; the cache forgets it when that changes.
    Some(rule.predicate.as_ref()?.simplified(varno))
}

/// The condition "this transaction has not locked the row" (C15), for range table entry `varno`.
pub(super) fn not_locked(functions: &Functions, varno: u32) -> *mut Expr {
    let place = [expressions::table_oid(varno), expressions::ctid(varno)];
    expressions::is_not_true(expressions::filter_call(functions.locked_here, &place))
}

/// The condition "the row is live, or no row of this transaction needs it", for range table entry
/// `varno`. Its function has a high cost, so that it is evaluated after all other conditions.
pub(super) fn live_or_unneeded(
    functions: &Functions,
    policy: &TablePolicy,
    varno: u32,
) -> *mut Expr {
    let args = [
        expressions::table_oid(varno),
        expressions::ctid(varno),
        live_condition(functions, policy, varno),
    ];
    expressions::filter_call(functions.live_or_unneeded, &args)
}

/// The condition by which the planner prunes partitions: for a table without overrides that is
/// partitioned by `_ts`, the comparison `_ts > ttl.cutoff(default)`. It stands beside the
/// condition above, which alone is free and so evaluated before any function of a user.
pub(super) fn pruning_condition(
    functions: &Functions,
    policy: &TablePolicy,
    table: PlannedTable<'_>,
) -> Option<*mut Expr> {
    let clock = policy
        .expiring_clock()
        .filter(|clock| clock.ttl.is_none() && clock.ts.not_null)?;
    let seconds = policy.expiring_default()?;
    if !table.is_partitioned_by(&clock.ts) {
        return None;
    }
    let (timestamptz, ts) = (
        pg_sys::TIMESTAMPTZOID,
        expressions::var(table.read().relid, &clock.ts),
    );
    let cutoff = expressions::call(
        functions.cutoff,
        timestamptz,
        &[expressions::int4(Some(seconds))],
    );
    Some(expressions::greater_than(timestamptz, ts, cutoff))
}

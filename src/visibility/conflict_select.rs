//! `INSERT … ON CONFLICT DO SELECT`, from 19 on, returns a row that it meets by a unique index, and
//! in no scan. One that is expired, and still there since a trigger keeps it, is not returned.

use super::{restriction, row_locks};
use crate::citus::{self, Doing};
use crate::pg::catalog::expressions;
use crate::pg::plan::planner_input::QueryTree;
use crate::settings;
use crate::store::{cache, extension};

/// Adds the restriction to the condition of such a statement, and of those in its WITH clause.
pub(crate) fn hide_expired(query: QueryTree<'_>) {
    if settings::show_expired() || citus::is_doing(Doing::Copying) {
        return;
    }
    for query in query.with_queries().chain([query]) {
        let (Some((condition, locks)), Some(target)) = (query.conflict_selection(), query.target())
        else {
            continue;
        };
        let policy = target.table().and_then(cache::policy);
        let Some(policy) = policy.filter(|policy| policy.hides()) else {
            continue;
        };
        let Some(functions) = extension::functions() else {
            return;
        };
        let varno = query.target_number();
        // With FOR UPDATE the statement has locked the row by now, whether it had been before or not.
        let live = if !locks && row_locks::are_taken_under(policy.labelled_table) {
            restriction::live_or_locked(&functions, &policy, varno)
        } else {
            restriction::live_condition(&functions, &policy, varno)
        };
        // SAFETY: the place of an expression, or of none.
        unsafe {
            let given = (*condition).cast::<pgrx::pg_sys::Expr>();
            *condition = if given.is_null() {
                live.cast()
            } else {
                expressions::and(&[live, given]).cast()
            };
        }
    }
}

//! Whether a row of a table is live, asked row by row within a statement.

use crate::clock::execution;
use crate::clock::now::now;
use crate::pg::abi::context::Context;
use crate::pg::exec::evaluator::{Evaluator, Expression};
use crate::pg::exec::table::Slot;
use crate::policy;
use crate::store::{TablePolicy, extension};
use crate::visibility::{self, row_locks};
use pgrx::pg_sys;

/// Tells live rows of one table from expired ones. Holds nothing that needs dropping, so that
/// PostgreSQL's errors may pass.
#[derive(Clone, Copy)]
pub(super) struct Liveness<'a> {
    default_ttl: Option<i32>,
    /// The column with the time of the last modification; 0 if rows do not expire by it.
    ts: i16,
    /// The column with the override; 0 for none.
    ttl: i16,
    /// The condition "live by all TTL indexes", if there are any.
    by_rules: Option<(Evaluator<'a>, Expression<'a>)>,
}

impl<'a> Liveness<'a> {
    /// For a table in which nothing expires.
    pub(super) const NOTHING: Self = Self {
        default_ttl: None,
        ts: 0,
        ttl: 0,
        by_rules: None,
    };

    /// As far as rows expire by the time of their last modification.
    pub(super) fn by_clock(policy: &TablePolicy) -> Self {
        let clock = policy.expiring_clock();
        Self {
            default_ttl: policy.label.default_ttl,
            ts: clock.map_or(0, |clock| clock.ts.attno),
            ttl: clock
                .and_then(|clock| clock.ttl)
                .map_or(0, |column| column.attno),
            by_rules: None,
        }
    }

    /// For a table under this policy.
    pub(super) fn of(policy: &TablePolicy, table: pg_sys::Oid, memory: Context<'a>) -> Self {
        let functions = extension::functions().filter(|_| !policy.rules.is_empty());
        let by_rules = functions.map(|functions| {
            let evaluator = Evaluator::new(table, memory);
            let own = evaluator.memory();
            // SAFETY: the evaluator's memory is there; a condition for rows of the table.
            let condition = own.within(|| unsafe {
                execution::keep_in(own.as_ptr());
                evaluator.prepare(visibility::live_by_rules(&functions, policy, 1))
            });
            (evaluator, condition)
        });
        Self {
            by_rules,
            ..Self::by_clock(policy)
        }
    }

    /// Whether the row is live for this statement, or locked by this transaction (C15).
    pub(super) fn is_live(&self, row: Slot<'_>) -> bool {
        self.is_live_by_clock(row) && self.is_live_by_rules(row)
            // SAFETY: the transaction has locked the slot's table.
            || unsafe { row_locks::holds(row.table().oid(), row.tid()) }
    }

    /// As far as rows expire by the time of their last modification.
    pub(super) fn is_live_by_clock(&self, row: Slot<'_>) -> bool {
        if self.ts == 0 {
            return true;
        }
        let ts = row.value(self.ts).map(|ts| ts.value() as i64);
        let ttl = row.value(self.ttl).map(|ttl| ttl.value() as i32);
        policy::is_live(ts, policy::effective_ttl(ttl, self.default_ttl), now())
    }

    fn is_live_by_rules(&self, row: Slot<'_>) -> bool {
        // NULL means live.
        self.by_rules.is_none_or(|(evaluator, condition)| {
            evaluator.holds_by_itself(condition, row) != Some(false)
        })
    }
}

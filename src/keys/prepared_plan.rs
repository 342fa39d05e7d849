//! A table's key plan, prepared for one statement.

use super::liveness::Liveness;
use super::many_rows::ManyRows;
use super::plan::{self, KeyPlan};
use crate::clock::execution;
use crate::pg::abi::context::Context;
use crate::pg::exec::evaluator::{Evaluator, Expression, Generated, IndexExpressions};
use crate::pg::exec::table::Table;
use crate::pg::session;
use crate::settings;
use crate::store::written;
use pgrx::prelude::*;

/// What must be evaluated before keys are known.
pub(super) struct Evaluation<'a> {
    pub(super) evaluator: Evaluator<'a>,
    /// For each key, what its index needs.
    pub(super) indexes: &'a [IndexExpressions<'a>],
    /// Generated columns, computed for the new row while its keys are looked up.
    pub(super) generated: &'a [Generated<'a>],
    /// CHECK constraints. A row that violates one is not looked up: an index's expression may
    /// rely on them.
    pub(super) checks: &'a [Expression<'a>],
}

/// Lives as long as the statement; nothing in it needs dropping.
pub(super) struct PreparedPlan<'a> {
    /// `None` if there is nothing to do. Kept until the statement's end, even if the cache
    /// forgets it.
    pub(super) plan: Option<&'a KeyPlan>,
    pub(super) liveness: Liveness<'a>,
    /// `None` if nothing must be evaluated.
    pub(super) evaluation: Option<Evaluation<'a>>,
    pub(super) many_rows: ManyRows,
    /// Whether the row comes from another server, and no statement writes it that was planned here.
    pub(super) applies: bool,
}

/// For a statement that writes to the table, in memory that lives as long. The executor has
/// opened and locked the indexes.
///
/// Where the plan is known and nothing is evaluated, no guard is needed: there is nothing to drop, and one is a fiftieth of
/// an INSERT.
pub(super) fn prepare<'a>(table: Table<'_>, memory: Context<'a>) -> &'a PreparedPlan<'a> {
    if !settings::show_expired()
        && !session::applies_others_changes()
        && let Some(plan) = plan::known_by_clock(table)
    {
        let plan = memory.keep(plan);
        return memory.put_one(PreparedPlan {
            plan: Some(plan),
            liveness: Liveness::by_clock(&plan.policy),
            evaluation: None,
            many_rows: ManyRows::none(),
            applies: false,
        });
    }
    prepare_guarded(table, memory)
}

#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
extern "C-unwind" fn prepare_guarded<'a>(
    table: Table<'_>,
    memory: Context<'a>,
) -> &'a PreparedPlan<'a> {
    memory.within(|| {
        let mut prepared = PreparedPlan {
            plan: None,
            liveness: Liveness::NOTHING,
            evaluation: None,
            many_rows: ManyRows::none(),
            applies: false,
        };
        if !settings::show_expired()
            && let Some(plan) = plan::of(table)
        {
            prepared.liveness = Liveness::of(&plan.policy, table.oid(), memory);
            if session::applies_others_changes() {
                // Logical replication fires no executor hook, and its rows come with their
                // `_ts`.
                written::note_copy(&plan.policy);
                // No query runs, but where a trigger's own statement writes.
                prepared.applies = execution::time().is_none();
            }
            if plan.needs_evaluation() {
                prepared.evaluation = Some(evaluation(table, &plan, memory));
            }
            prepared.plan = Some(memory.keep(plan));
        }
        memory.put_one(prepared)
    })
}

fn evaluation<'a>(table: Table<'_>, plan: &KeyPlan, memory: Context<'a>) -> Evaluation<'a> {
    let evaluator = Evaluator::new(table.oid(), memory);
    let keys = plan.keys.iter();
    let indexes = keys.map(|key| evaluator.index(key.unique.index)).collect();
    let generated = plan.generated.iter();
    let generated = generated.map(|&attno| evaluator.generated(table, attno));
    Evaluation {
        evaluator,
        indexes: memory.put(indexes),
        generated: memory.put(generated.collect()),
        checks: memory.put(evaluator.checks(table)),
    }
}

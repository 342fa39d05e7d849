//! Statements on tables of Citus. The node to which a statement is sent stamps it, by a value that
//! Citus takes once for all shards; the shards keep what they are given
//! (`docs/decisions/0063-citus.md`).

use super::StampedTable;
use crate::citus;
use crate::pg::catalog::{defaults, expressions};
use crate::pg::plan::planner_input::{Assignments, QueryTree};
use crate::store::cache;
use pgrx::pg_sys::{self, CmdType, Expr};

/// Stamps a statement on a shell. Citus refuses functions in ON CONFLICT DO UPDATE, where the value
/// of the row that was to be inserted serves, and in MERGE, which the shards stamp.
pub(super) fn stamp(target: &StampedTable<'_>, query: QueryTree<'_>) {
    let (column, command) = (&target.clock.ts, query.read().commandType);
    let stamps = match command {
        CmdType::CMD_INSERT => !target.restores,
        CmdType::CMD_UPDATE => true,
        _ => false,
    };
    for action in query.merge_actions() {
        // The shard adds the default, as the rewriter has done here.
        // SAFETY: `given` is an expression of this target list.
        let is_default = |given| unsafe { defaults::is_stored(target.relid, column.attno, given) };
        // SAFETY: the executor of this node does not see the list.
        unsafe { action.assignments().remove(column.attno, is_default) };
    }
    if !stamps {
        return;
    }
    // Under a granularity the shard decides whether an UPDATE stamps, unless the statement gives `_ts`.
    let is_left = |list: &Assignments<'_>| {
        target.policy.label.ts_granularity > 0
            && !citus::is_replicated(target.relid)
            && !list.columns().any(|assigned| assigned == column.attno)
    };
    let list = query.assignments();
    if command == CmdType::CMD_INSERT || !is_left(&list) {
        let present = |_given| target.current_ts();
        // SAFETY: what is made here stays as long as the statement.
        unsafe { list.assign(column, c"_ts", present) };
    }
    if let (Some(list), Some(excluded)) = (query.conflict_assignments(), query.excluded())
        && !is_left(&list)
    {
        let inserted = |_given| expressions::var(excluded, column);
        // SAFETY: as above.
        unsafe { list.assign(column, c"_ts", inserted) };
    }
}

/// Whether Citus brings the rows of another table into this one, which will take its place: they keep their
/// time.
pub(super) fn brings_over(query: QueryTree<'_>, relid: pg_sys::Oid) -> bool {
    !citus::is_known_to_be_absent()
        && query
            .inserted_from()
            .is_some_and(|source| citus::is_successor(relid, source))
}

/// With `ttl.preserve_ts`: an UPDATE says so to the shards, by giving each row the time that it has.
pub(super) fn keep(query: QueryTree<'_>) {
    for query in query.with_queries() {
        keep_in(query);
    }
    keep_in(query);
}

fn keep_in(query: QueryTree<'_>) {
    let Some(entry) = query.target() else {
        return;
    };
    let policy = cache::policy(entry.read().relid).filter(|policy| policy.is_shell());
    let Some(clock) = policy.and_then(|policy| policy.clock) else {
        return;
    };
    let own = |given: Option<*mut Expr>| {
        given.unwrap_or_else(|| expressions::var(entry.varno(), &clock.ts))
    };
    if query.read().commandType == CmdType::CMD_UPDATE {
        // SAFETY: what is made here stays as long as the statement.
        unsafe { query.assignments().assign(&clock.ts, c"_ts", own) };
    }
    if let Some(list) = query.conflict_assignments() {
        // SAFETY: as above.
        unsafe { list.assign(&clock.ts, c"_ts", own) };
    }
}

impl StampedTable<'_> {
    /// What Citus gives a row of a shard; `None` where the shard stamps by itself.
    pub(super) fn given_by_citus(&self, given: Option<*mut Expr>) -> Option<*mut Expr> {
        given.filter(|_| self.policy.is_shard())
    }
}

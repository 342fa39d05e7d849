//! Adds `_ts = ttl.current_ts()` to what a statement writes (C1).

mod citus_tables;
pub(crate) mod skip_override_check;

use crate::citus;
use crate::error::Error;
use crate::pg::catalog::{self, defaults, expressions, roles};
use crate::pg::plan::planner_input::{Assignments, QueryTree, RangeTableEntry};
use crate::settings;
use crate::store::extension::{self, Functions};
use crate::store::{Clock, TablePolicy, cache};
use crate::visibility::planned_statement;
use pgrx::pg_sys::{self, CmdType, Expr};
use std::rc::Rc;

/// A table that a statement writes to.
struct StampedTable<'a> {
    entry: RangeTableEntry<'a>,
    relid: pg_sys::Oid,
    functions: Functions,
    policy: Rc<TablePolicy>,
    clock: Clock,
    /// INSERT keeps the `_ts` that it gives: it restores a dump.
    restores: bool,
}

/// Whether the statement may have anything to stamp. Calls no function of PostgreSQL.
#[inline]
pub(super) fn may_write(query: QueryTree<'_>) -> bool {
    if !query.read().cteList.is_null() {
        return true;
    }
    let needs_none = |entry: RangeTableEntry<'_>| {
        let entry = entry.read();
        cache::is_known_to_need_no_stamp(entry.relid, reaches_children(&entry))
    };
    query.read().resultRelation != 0 && !query.target().is_some_and(needs_none)
}

/// Whether what is written to this table may come to a partition or child of it. INSERT never marks its
/// target as inherited, but routes rows to partitions.
fn reaches_children(entry: &pg_sys::RangeTblEntry) -> bool {
    entry.inh || entry.relkind.cast_unsigned() == pg_sys::RELKIND_PARTITIONED_TABLE
}

/// Stamps the statement and the data-modifying statements in its WITH clause, which stands at the
/// top level only.
pub(super) fn stamp_query(query: QueryTree<'_>) {
    let keeps = settings::preserve_ts();
    let without_citus = citus::is_known_to_be_absent();
    if !may_write(query) || planned_statement::current().archives() || (keeps && without_citus) {
        return;
    }
    let Some(functions) = extension::functions() else {
        return;
    };
    if keeps {
        return citus_tables::keep(query);
    }
    for query in query.with_queries() {
        stamp_statement(query, functions);
    }
    stamp_statement(query, functions);
}

fn stamp_statement(query: QueryTree<'_>, functions: Functions) {
    let Some(entry) = query.target().filter(|_| writes_rows(query)) else {
        return;
    };
    let relid = entry.read().relid;
    let Some(policy) = cache::policy(relid) else {
        return refuse_unstamped(entry);
    };
    // Rows that expire by TTL indexes only have no `_ts`.
    let Some(clock) = policy.clock else {
        return;
    };
    let command = query.read().commandType;
    if command == CmdType::CMD_INSERT && citus_tables::brings_over(query, relid) {
        return;
    }
    // What a foreign key changes is no modification by a user. It may also reach an expired row
    // that a trigger keeps, which must not live again.
    if command == CmdType::CMD_UPDATE && planned_statement::current().keeps_integrity_of(relid) {
        return;
    }
    // A dump's script runs with row_security off, as the owner or a superuser.
    let may_restore = command == CmdType::CMD_INSERT && roles::is_row_security_off();
    if may_restore {
        planned_statement::depends_on_role();
    }
    let target = StampedTable {
        entry,
        relid,
        functions,
        policy,
        clock,
        restores: may_restore && roles::may_read_physically(relid),
    };
    if target.policy.is_shell() {
        return citus_tables::stamp(&target, query);
    }
    let mut updates = target.stamp(command, query.assignments(), false);
    if let Some(set) = query.conflict_assignments() {
        updates |= target.stamp(CmdType::CMD_UPDATE, set, false);
    }
    for action in query.merge_actions() {
        updates |= target.stamp(action.read().commandType, action.assignments(), true);
    }
    if updates {
        let dependents = entry.dependents_of_update(clock.ts.attno);
        if !dependents.is_empty() {
            // The marks depend on the role's privileges.
            planned_statement::depends_on_role();
            entry.mark_updated(&dependents);
        }
    }
}

/// Whether the statement inserts or updates. A MERGE may only delete.
fn writes_rows(query: QueryTree<'_>) -> bool {
    let writes = |command| [CmdType::CMD_INSERT, CmdType::CMD_UPDATE].contains(&command);
    let mut actions = query.merge_actions();
    writes(query.read().commandType) || actions.any(|action| writes(action.read().commandType))
}

/// Refuses to write through a parent without a policy where a partition or child has one: the
/// rows would not be stamped, and would expire although they were just written.
fn refuse_unstamped(entry: RangeTableEntry<'_>) {
    let entry = entry.read();
    let relid = entry.relid;
    let child = || cache::child_with_ttl(relid);
    let Some(child) = reaches_children(&entry).then(child).flatten() else {
        return;
    };
    let (table, child) = (
        catalog::qualified_name(relid),
        catalog::qualified_name(child),
    );
    Error::unsupported(format!(
        "cannot write through table {table} to table {child}, which has a time to live"
    ))
    .detail("The time of last modification would not be set.")
    .hint(format!("Write to {child} itself, or set a time to live on {table}: it holds for all its partitions and children."))
    .raise()
}

impl StampedTable<'_> {
    fn current_ts(&self) -> *mut Expr {
        expressions::call(self.functions.current_ts, pg_sys::TIMESTAMPTZOID, &[])
    }

    fn stamp_insert(&self, list: Assignments<'_>, is_merge: bool) {
        let column = &self.clock.ts;
        // SAFETY: what is given is an expression, and what is made here stays like it.
        unsafe {
            list.assign(column, c"_ts", |given| match given {
                // A plan can outlive the setting, so it is read again at execution. What the
                // rewriter has put there was not given by the statement.
                Some(given)
                    if self.restores && !defaults::is_stored(self.relid, column.attno, given) =>
                {
                    let table = expressions::table(self.relid);
                    let restoring = self.functions.reads_physically;
                    let restoring = expressions::call(restoring, pg_sys::BOOLOID, &[table]);
                    expressions::case_timestamptz(restoring, given, self.current_ts())
                }
                // Citus gives it on the node to which the statement was sent; a MERGE it does not.
                Some(given) if self.policy.is_shard() && !is_merge => given,
                _ => self.current_ts(),
            });
        }
    }

    fn stamp_update(&self, list: Assignments<'_>, is_merge: bool) {
        let column = &self.clock.ts;
        let refreshes = self.policy.label.ts_granularity > 0 && !self.sets_override(&list);
        let stamp =
            |given: Option<*mut Expr>| match self.given_by_citus(given.filter(|_| !is_merge)) {
                Some(given) => given,
                None if refreshes => self.refreshed_ts(),
                None => self.current_ts(),
            };
        // SAFETY: what is made here stays as long as the statement.
        unsafe { list.assign(column, c"_ts", stamp) };
    }

    /// What the row has, if it is recent enough (C16).
    fn refreshed_ts(&self) -> *mut Expr {
        let var = |column| expressions::var(self.entry.varno(), column);
        let ttl = self.clock.ttl.as_ref();
        let ttl = ttl.map_or_else(|| expressions::int4(None), var);
        let granularity = expressions::int4(Some(self.policy.label.ts_granularity));
        let args = [var(&self.clock.ts), ttl, granularity];
        let refreshed =
            expressions::call(self.functions.refreshed_ts, pg_sys::TIMESTAMPTZOID, &args);
        if self.policy.expiring_default().is_some() {
            return refreshed;
        }
        // Nothing bounds the granularity of rows that inherit nothing; a default that comes later
        // must find when they were last modified (C4).
        match &self.clock.ttl {
            Some(ttl) => {
                let inherits = expressions::is_null(var(ttl));
                expressions::case_timestamptz(inherits, self.current_ts(), refreshed)
            }
            None => self.current_ts(),
        }
    }

    /// Whether the assignments change the override, itself or by a column that it is generated
    /// from.
    fn sets_override(&self, list: &Assignments<'_>) -> bool {
        self.clock.ttl.as_ref().is_some_and(|ttl| {
            let generates = |column| self.entry.dependents_of_update(column).contains(&ttl.attno);
            let mut columns = list.columns();
            columns.any(|column| column == ttl.attno || (ttl.generated && generates(column)))
        })
    }

    /// Stamps what the command assigns. True if it is an UPDATE.
    fn stamp(&self, command: CmdType::Type, list: Assignments<'_>, is_merge: bool) -> bool {
        match command {
            CmdType::CMD_INSERT => self.stamp_insert(list, is_merge),
            CmdType::CMD_UPDATE => self.stamp_update(list, is_merge),
            _ => {}
        }
        command == CmdType::CMD_UPDATE
    }
}

//! Adds `_ts = ttl.current_ts()` to what a statement writes (C1).

use crate::error::Error;
use crate::pg::catalog::{self, Attribute};
use crate::pg::{defaults, lists, nodes, planner_input, roles};
use crate::settings;
use crate::store::extension::{self, Functions};
use crate::store::{Clock, TablePolicy, cache};
use crate::visibility::{live_condition, statement};
use pgrx::PgSqlErrorCode;
use pgrx::pg_sys::{
    self, CmdType, Expr, List, MergeAction, OnConflictExpr, Query, RangeTblEntry, TargetEntry,
};
use std::rc::Rc;

/// A table that a statement writes to.
struct Target {
    relid: pg_sys::Oid,
    functions: Functions,
    policy: Rc<TablePolicy>,
    clock: Clock,
    varno: u32,
    /// INSERT keeps the `_ts` that it gives: it restores a dump.
    restores: bool,
}

/// Stamps the statement and the data-modifying statements in its WITH clause.
///
/// # Safety
/// `query` is the planner's input after rewriting, which may be scribbled on.
pub(super) unsafe fn stamp_query(query: *mut Query) {
    // SAFETY: as required of the caller.
    let writes_nothing = unsafe { (*query).resultRelation == 0 && (*query).cteList.is_null() };
    if writes_nothing || settings::preserve_ts() {
        return;
    }
    let Some(functions) = extension::functions() else {
        return;
    };
    // SAFETY: as required of the caller. Data-modifying WITH stands at the top level only.
    unsafe {
        for cte in lists::iter::<pg_sys::CommonTableExpr>((*query).cteList) {
            stamp_statement((*cte).ctequery.cast(), functions);
        }
        stamp_statement(query, functions);
    }
}

/// # Safety
/// As [`stamp_query`].
unsafe fn stamp_statement(query: *mut Query, functions: Functions) {
    // SAFETY: as required of the caller; list cells are replaced by nodes of the same kind.
    unsafe {
        let command = (*query).commandType;
        let varno = u32::try_from((*query).resultRelation).unwrap_or(0);
        if varno == 0 || !writes_rows(query) {
            return;
        }
        let entry =
            pg_sys::list_nth((*query).rtable, varno.cast_signed() - 1).cast::<RangeTblEntry>();
        let Some(policy) = cache::policy((*entry).relid) else {
            return refuse_unstamped(entry);
        };
        // Rows that expire by TTL indexes only have no `_ts`.
        let Some(clock) = policy.clock else {
            return;
        };
        // A dump's script runs with row_security off, as the owner or a superuser.
        let may_restore = command == CmdType::CMD_INSERT && roles::is_row_security_off();
        if may_restore {
            statement::depends_on_role();
        }
        let restores = may_restore && roles::may_read_physically((*entry).relid);
        let target = Target {
            relid: (*entry).relid,
            functions,
            policy,
            clock,
            varno,
            restores,
        };
        let mut updates = command == CmdType::CMD_UPDATE;
        match command {
            CmdType::CMD_INSERT => {
                (*query).targetList = target.stamp_insert((*query).targetList);
                let conflict = (*query).onConflict.cast::<OnConflictExpr>();
                if !conflict.is_null()
                    && (*conflict).action == pg_sys::OnConflictAction::ONCONFLICT_UPDATE
                {
                    (*conflict).onConflictSet = target.stamp_update((*conflict).onConflictSet);
                    updates = true;
                }
            }
            CmdType::CMD_UPDATE => (*query).targetList = target.stamp_update((*query).targetList),
            _ => {
                for action in lists::iter::<MergeAction>((*query).mergeActionList) {
                    updates |= target.stamp_merge_action(action);
                }
            }
        }
        if updates {
            let dependents = planner_input::dependents_of_update((*entry).relid, clock.ts.attno);
            if !dependents.is_empty() {
                // The marks depend on the role's privileges.
                statement::depends_on_role();
                planner_input::mark_updated(query, entry, &dependents);
            }
        }
    }
}

/// Whether the statement inserts or updates. A MERGE may only delete.
///
/// # Safety
/// `query` is the planner's input.
unsafe fn writes_rows(query: *mut Query) -> bool {
    let writes = |command| [CmdType::CMD_INSERT, CmdType::CMD_UPDATE].contains(&command);
    // SAFETY: as required of the caller.
    unsafe {
        writes((*query).commandType)
            || lists::iter::<MergeAction>((*query).mergeActionList)
                .any(|action| writes((*action).commandType))
    }
}

/// Refuses to write through a parent without a policy where a partition or child has one: the
/// rows would not be stamped, and would expire although they were just written.
///
/// # Safety
/// `entry` is the result relation's entry in the range table.
unsafe fn refuse_unstamped(entry: *mut RangeTblEntry) {
    // SAFETY: as required of the caller.
    let (relid, inherits, relkind) = unsafe { ((*entry).relid, (*entry).inh, (*entry).relkind) };
    // INSERT never marks its target as inherited, but routes rows to partitions.
    let reaches_children = inherits || relkind.cast_unsigned() == pg_sys::RELKIND_PARTITIONED_TABLE;
    let Some(child) = cache::child_with_ttl(relid).filter(|_| reaches_children) else {
        return;
    };
    let (table, child) = (
        catalog::qualified_name(relid),
        catalog::qualified_name(child),
    );
    Error::new(
        PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        format!("cannot write through table {table} to table {child}, which has a time to live"),
    )
    .detail("The time of last modification would not be set.")
    .hint(format!("Write to {child} itself, or set a time to live on {table}: it holds for all its partitions and children."))
    .raise()
}

impl Target {
    fn current_ts(&self) -> *mut Expr {
        nodes::call(self.functions.current_ts, pg_sys::TIMESTAMPTZOID, &[])
    }

    /// # Safety
    /// `list` is a target list of the planner's input.
    unsafe fn stamp_insert(&self, list: *mut List) -> *mut List {
        // SAFETY: as required of the caller.
        unsafe {
            assign(list, &self.clock.ts, |given| match given {
                // A plan can outlive the setting, so it is read again at execution. What the
                // rewriter has put there was not given by the statement.
                Some(given)
                    if self.restores
                        && !defaults::is_stored(self.relid, self.clock.ts.attno, given) =>
                {
                    let table = nodes::table(self.relid);
                    let restoring = self.functions.reads_physically;
                    let restoring = nodes::call(restoring, pg_sys::BOOLOID, &[table]);
                    nodes::case_timestamptz(restoring, given, self.current_ts())
                }
                _ => self.current_ts(),
            })
        }
    }

    /// A cascade may reach an expired row, which must not become live by it.
    ///
    /// # Safety
    /// As [`Self::stamp_insert`].
    unsafe fn stamp_update(&self, list: *mut List) -> *mut List {
        // SAFETY: as required of the caller.
        unsafe {
            let stamp = if self.policy.ts_granularity > 0 && !self.sets_override(list) {
                self.refreshed_ts()
            } else {
                self.current_ts()
            };
            assign(list, &self.clock.ts, |_given| {
                let statement = statement::current();
                if statement.touches_expired_rows_of(self.relid) && self.policy.hides() {
                    let live = live_condition(&self.functions, &self.policy, self.varno);
                    let kept = nodes::var(self.varno, &self.clock.ts);
                    nodes::case_timestamptz(live, stamp, kept)
                } else {
                    stamp
                }
            })
        }
    }

    /// What the row has, if it is recent enough (C16).
    fn refreshed_ts(&self) -> *mut Expr {
        let ts = nodes::var(self.varno, &self.clock.ts);
        let ttl = self.clock.ttl.as_ref();
        let ttl = ttl.map_or_else(|| nodes::int4(None), |ttl| nodes::var(self.varno, ttl));
        let granularity = nodes::int4(Some(self.policy.ts_granularity));
        let args = [ts, ttl, granularity];
        nodes::call(self.functions.refreshed_ts, pg_sys::TIMESTAMPTZOID, &args)
    }

    /// Whether the assignments change the override, itself or by a column that it is generated
    /// from.
    ///
    /// # Safety
    /// As [`Self::stamp_insert`].
    unsafe fn sets_override(&self, list: *mut List) -> bool {
        let Some(ttl) = &self.clock.ttl else {
            return false;
        };
        // SAFETY: as required of the caller; the statement has locked its target.
        unsafe {
            lists::iter::<TargetEntry>(list)
                .filter(|&entry| !(*entry).resjunk)
                .any(|entry| {
                    let assigned = (*entry).resno;
                    assigned == ttl.attno
                        || (ttl.generated
                            && planner_input::dependents_of_update(self.relid, assigned)
                                .contains(&ttl.attno))
                })
        }
    }

    /// Stamps what the action writes. True if it is an UPDATE.
    ///
    /// # Safety
    /// `action` is an action of the planner's input.
    unsafe fn stamp_merge_action(&self, action: *mut MergeAction) -> bool {
        // SAFETY: as required of the caller.
        unsafe {
            match (*action).commandType {
                CmdType::CMD_INSERT => {
                    (*action).targetList = self.stamp_insert((*action).targetList)
                }
                CmdType::CMD_UPDATE => {
                    (*action).targetList = self.stamp_update((*action).targetList)
                }
                _ => {}
            }
            (*action).commandType == CmdType::CMD_UPDATE
        }
    }
}

/// Replaces what is assigned to the column, or adds an assignment where the planner expects it:
/// in the order of columns, before resjunk entries.
///
/// # Safety
/// `list` is a target list of the planner's input.
unsafe fn assign(
    list: *mut List,
    column: &Attribute,
    value: impl FnOnce(Option<*mut Expr>) -> *mut Expr,
) -> *mut List {
    // SAFETY: as required of the caller.
    unsafe {
        let mut position = 0;
        for entry in lists::iter::<TargetEntry>(list) {
            if (*entry).resjunk || (*entry).resno > column.attno {
                break;
            }
            if (*entry).resno == column.attno {
                (*entry).expr = value(Some((*entry).expr));
                return list;
            }
            position += 1;
        }
        let entry = nodes::assignment(value(None), column.attno, c"_ts");
        pg_sys::list_insert_nth(list, position, entry.cast())
    }
}

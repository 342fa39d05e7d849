//! The executor's hooks.

use crate::pg::abi::context::Context;
use crate::pg::abi::{externs, lists, unguarded};
use crate::pg::catalog::expressions;
use core::ffi::c_int;
use core::marker::PhantomData;
use core::ops::Deref;
use pgrx::pg_sys::{
    self, Oid, PlanRowMark, PlannedStmt, QueryDesc, RangeTblEntry, RowMarkType, TargetEntry,
};

/// A query in the executor. Errors may pass where one is held: nothing needs dropping.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct ExecutorQuery<'a>(*mut QueryDesc, PhantomData<&'a ()>);

impl<'a> ExecutorQuery<'a> {
    /// Its snapshot, only for comparison.
    pub(crate) fn snapshot(self) -> pg_sys::Snapshot {
        // SAFETY: the query descriptor exists until the hook for which the value was made returns.
        unsafe { (*self.0).snapshot }
    }

    /// Its execution state; null before it is started and after its end.
    pub(crate) fn state(self) -> *mut pg_sys::EState {
        // SAFETY: the query descriptor exists until the hook for which the value was made returns.
        unsafe { (*self.0).estate }
    }

    pub(crate) fn text(self) -> Option<&'a core::ffi::CStr> {
        // SAFETY: a C string that stays as long as the query.
        unsafe {
            let text = (*self.0).sourceText;
            (!text.is_null()).then(|| core::ffi::CStr::from_ptr(text))
        }
    }

    /// The type and value of its parameter with this number, from 0; `None` where it has none.
    pub(crate) fn parameter(self, at: usize) -> Option<(pg_sys::Oid, Option<pg_sys::Datum>)> {
        // SAFETY: the list has that many; those of PostgreSQL's own queries are all given.
        unsafe {
            let list = (*self.0).params.as_ref()?;
            if at >= usize::try_from(list.numParams).ok()? || list.paramFetch.is_some() {
                return None;
            }
            let given = &*list.params.as_ptr().add(at);
            Some((given.ptype, (!given.isnull).then_some(given.value)))
        }
    }

    /// Has it see all that is committed now, and what the transaction has done since it was made;
    /// before it is started, with its snapshot as the active one. Unguarded.
    #[allow(ffi_unwind_calls, reason = "PostgreSQL's own longjmp passes")]
    pub(crate) fn see_latest(self) {
        // SAFETY: the query is there, and is released with the snapshot that it has then.
        unsafe {
            let former = (*self.0).snapshot;
            // The caller that pushed it pops what is there then.
            unguarded::PopActiveSnapshot();
            unguarded::PushActiveSnapshot(unguarded::GetLatestSnapshot());
            (*self.0).snapshot = unguarded::RegisterSnapshot(externs::GetActiveSnapshot());
            unguarded::UnregisterSnapshot(former);
        }
    }

    /// The memory context of its execution.
    pub(crate) fn memory(self) -> Option<Context<'a>> {
        // SAFETY: the memory goes after the query's end.
        unsafe { Some(Context::of(self.state().as_ref()?.es_query_cxt)) }
    }

    pub(crate) fn plan(self) -> Option<StatementPlan<'a>> {
        // SAFETY: the query is there, and its plan as long.
        unsafe { (*self.0).plannedstmt.as_ref().map(StatementPlan) }
    }
}

#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct StatementPlan<'a>(&'a PlannedStmt);

impl Deref for StatementPlan<'_> {
    type Target = PlannedStmt;

    fn deref(&self) -> &PlannedStmt {
        self.0
    }
}

impl StatementPlan<'_> {
    /// The ModifyTable on top of an INSERT.
    fn insertion(&self) -> Option<&pg_sys::ModifyTable> {
        // SAFETY: a plan's top node is null or a node, whose tag is checked before it is read as another type.
        let top = unsafe { self.planTree.cast::<pg_sys::ModifyTable>().as_ref() }?;
        let is_insertion = top.plan.type_ == pg_sys::NodeTag::T_ModifyTable
            && top.operation == pg_sys::CmdType::CMD_INSERT;
        is_insertion.then_some(top)
    }

    /// Whether it is one INSERT or UPDATE, and nothing in a WITH clause writes.
    pub(crate) fn only_inserts_or_updates(&self) -> bool {
        let commands = [pg_sys::CmdType::CMD_INSERT, pg_sys::CmdType::CMD_UPDATE];
        !self.hasModifyingCTE && commands.contains(&self.commandType)
    }

    /// Whether it is an INSERT … ON CONFLICT DO UPDATE.
    pub(crate) fn updates_on_conflict(&self) -> bool {
        let update = pg_sys::OnConflictAction::ONCONFLICT_UPDATE;
        self.insertion()
            .is_some_and(|top| top.onConflictAction == update)
    }

    /// What an INSERT gives to a column of type integer, if it is the same constant in each row:
    /// `Some(None)` for NULL.
    pub(crate) fn inserted_int4(&self, attno: i16) -> Option<Option<i32>> {
        // SAFETY: an INSERT's source has an entry for each column of the table, in order.
        unsafe {
            let source = self.insertion()?.plan.lefttree.as_ref()?;
            let entry = lists::nth::<pg_sys::TargetEntry>(source.targetlist, i32::from(attno) - 1)?;
            let given = (*entry).expr.cast::<pg_sys::Const>().as_ref()?;
            let is_int4 = given.xpr.type_ == pg_sys::NodeTag::T_Const
                && given.consttype == pg_sys::INT4OID
                && (*entry).resno == attno;
            is_int4.then(|| (!given.constisnull).then(|| given.constvalue.value() as i32))
        }
    }

    /// The first relation, by its OID and kind.
    pub(crate) fn first_table(&self) -> Option<(pg_sys::Oid, u8)> {
        // SAFETY: PostgreSQL's planner puts range table entries, and nothing else, into this list.
        let first = unsafe { lists::nth::<RangeTblEntry>(self.rtable, 0)?.as_ref()? };
        let is_relation = first.rtekind == pg_sys::RTEKind::RTE_RELATION;
        is_relation.then_some((first.relid, first.relkind.cast_unsigned()))
    }

    pub(crate) fn writes(&self) -> bool {
        #[cfg(not(since19))]
        return !self.resultRelations.is_null();
        #[cfg(since19)]
        return !self.resultRelationRelids.is_null();
    }

    /// The relation of an entry of the range table, which a plan counts from 1.
    fn relid(&self, varno: i32) -> Option<Oid> {
        // SAFETY: PostgreSQL's planner puts range table entries, and nothing else, into this list.
        unsafe { Some((*lists::nth::<RangeTblEntry>(self.rtable, varno - 1)?).relid) }
    }

    /// The relations that it writes to.
    pub(crate) fn written(&self) -> impl Iterator<Item = Oid> {
        // SAFETY: the planner has completed the plan, so its result relations are set.
        unsafe { lists::targets(self) }.filter_map(|index| self.relid(index))
    }

    /// The relations whose rows it locks, as FOR UPDATE does.
    pub(crate) fn locked(&self) -> impl Iterator<Item = Oid> {
        // SAFETY: the planner puts PlanRowMarks, and nothing else, into this list.
        let marks = unsafe { lists::iter::<PlanRowMark>(self.rowMarks).map(|mark| *mark) };
        // As PostgreSQL's RowMarkRequiresRowShareLock.
        let marked = marks
            .filter(|mark| mark.markType <= RowMarkType::ROW_MARK_KEYSHARE)
            .filter_map(|mark| self.relid(mark.rti.cast_signed()));
        #[cfg(since19)]
        let marked = marked.chain(self.written().filter(|_| self.locks_on_conflict()));
        marked
    }

    /// Whether it has an INSERT … ON CONFLICT DO SELECT FOR UPDATE, or with another lock.
    #[cfg(since19)]
    pub(crate) fn locks_on_conflict(&self) -> bool {
        use pg_sys::{LockClauseStrength, ModifyTable, NodeTag, OnConflictAction};
        let top = self.planTree.cast::<ModifyTable>();
        // Those of the WITH clause are on top of subplans.
        // SAFETY: a list of plans, some of which are null.
        let below = unsafe { lists::iter::<ModifyTable>(self.subplans) };
        below.chain([top]).any(|plan| {
            // SAFETY: null or a node, which tells its type.
            unsafe { plan.as_ref() }.is_some_and(|plan| {
                plan.plan.type_ == NodeTag::T_ModifyTable
                    && plan.onConflictAction == OnConflictAction::ONCONFLICT_SELECT
                    && plan.onConflictLockStrength != LockClauseStrength::LCS_NONE
            })
        })
    }

    /// The function that decides which value the plan below the top node gives the column
    /// ([`expressions::case_asks`]).
    pub(crate) fn asked_for(&self, attno: i16) -> Option<Oid> {
        // SAFETY: a tree of plans, with target lists of expressions.
        unsafe {
            let rows = (*self.planTree).lefttree.as_ref()?;
            let mut entries = lists::iter::<TargetEntry>(rows.targetlist);
            let entry = entries.find(|&entry| (*entry).resno == attno)?;
            expressions::case_asks((*entry).expr)
        }
    }
}

/// Code that runs around the executor's functions; each method must call its last argument, but
/// `run` for a query that would meet no row.
///
/// # Safety
/// Unguarded (`docs/decisions/0004-unguarded-trampolines.md`): the methods do not panic, and
/// nothing needs dropping where an error may pass.
pub(crate) unsafe trait Around {
    fn start(query: ExecutorQuery<'_>, eflags: c_int, start: impl FnOnce());
    fn run(query: ExecutorQuery<'_>, run: impl FnOnce());
    fn finish(query: ExecutorQuery<'_>, finish: impl FnOnce());
    fn end(query: ExecutorQuery<'_>, end: impl FnOnce());
}

/// Installs the hooks; once, at load.
pub(crate) fn init<A: Around>() {
    start::install::<A>();
    run::install::<A>();
    finish::install::<A>();
    end::install::<A>();
}

macro_rules! hook {
    ($name:ident, $around:ident, $hook:ident: $type:ident, $standard:ident,
     ($($argument:ident: $of:ty),*) $($told:ident)?) => {
        mod $name {
            use super::*;

            static mut PREVIOUS: pg_sys::$type = None;

            unsafe extern "C-unwind" {
                fn $standard(query: *mut QueryDesc, $($argument: $of),*);
            }

            pub(in crate::pg) fn install<A: Around>() {
                // SAFETY: single-threaded, in the postmaster, before any query.
                unsafe { PREVIOUS = core::ptr::replace(&raw mut pg_sys::$hook, Some(hook::<A>)) };
            }

            #[allow(
                ffi_unwind_calls,
                reason = "an error that unwinds from C is PostgreSQL's own longjmp"
            )]
            unsafe extern "C-unwind" fn hook<A: Around>(
                query: *mut QueryDesc,
                $($argument: $of),*
            ) {
                // SAFETY: PostgreSQL's arguments are passed on; PREVIOUS is set once.
                let go_on = || unsafe { PREVIOUS.unwrap_or($standard)(query, $($argument),*) };
                A::$around(ExecutorQuery(query, PhantomData), $($told,)? go_on);
            }
        }
    };
}
hook!(start, start, ExecutorStart_hook: ExecutorStart_hook_type, standard_ExecutorStart,
    (eflags: c_int) eflags);
#[cfg(not(since18))]
hook!(run, run, ExecutorRun_hook: ExecutorRun_hook_type, standard_ExecutorRun,
    (direction: pg_sys::ScanDirection::Type, count: u64, execute_once: bool));
#[cfg(since18)]
hook!(run, run, ExecutorRun_hook: ExecutorRun_hook_type, standard_ExecutorRun,
    (direction: pg_sys::ScanDirection::Type, count: u64));
// Data-modifying WITH queries run to completion in ExecutorFinish.
hook!(finish, finish, ExecutorFinish_hook: ExecutorFinish_hook_type, standard_ExecutorFinish, ());
hook!(end, end, ExecutorEnd_hook: ExecutorEnd_hook_type, standard_ExecutorEnd, ());

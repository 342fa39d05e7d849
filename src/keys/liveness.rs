//! Whether a row of a table is live, asked row by row within a statement.

use crate::clock::execution;
use crate::clock::now::now;
use crate::pg::unguarded;
use crate::policy;
use crate::store::{TablePolicy, extension};
use crate::visibility::{self, row_locks};
use pgrx::pg_sys::{self, TupleTableSlot};

/// Judges rows of one table. Nothing in it needs dropping, so that PostgreSQL's errors
/// may pass.
#[derive(Clone, Copy)]
pub(super) struct Judge {
    default_ttl: Option<i32>,
    /// The column with the time of the last modification; 0: rows do not expire by it.
    ts: i16,
    /// The column with the override; 0: none.
    ttl: i16,
    /// "The row is live by all TTL indexes"; null if there are none.
    by_rules: *mut pg_sys::ExprState,
    context: *mut pg_sys::ExprContext,
}

impl Judge {
    /// For a table in which nothing expires.
    pub(super) const NOTHING: Self = Self {
        default_ttl: None,
        ts: 0,
        ttl: 0,
        by_rules: core::ptr::null_mut(),
        context: core::ptr::null_mut(),
    };

    /// In the current memory context, which is to live as long.
    ///
    /// # Safety
    /// Within a transaction.
    pub(super) unsafe fn of(policy: &TablePolicy) -> Self {
        let clock = policy.expiring_clock();
        let mut judge = Self {
            default_ttl: policy.default_ttl,
            ts: clock.map_or(0, |clock| clock.ts.attno),
            ttl: clock
                .and_then(|clock| clock.ttl)
                .map_or(0, |column| column.attno),
            ..Self::NOTHING
        };
        if let Some(functions) = extension::functions().filter(|_| !policy.rules.is_empty()) {
            // SAFETY: all is allocated with the estate, a child of the current context.
            unsafe {
                let estate = pg_sys::CreateExecutorState();
                execution::keep_in((*estate).es_query_cxt);
                let former = pg_sys::MemoryContextSwitchTo((*estate).es_query_cxt);
                let condition = visibility::live_by_rules(&functions, policy, 1);
                judge.by_rules = pg_sys::ExecPrepareExpr(condition, estate);
                judge.context = pg_sys::MakePerTupleExprContext(estate);
                pg_sys::MemoryContextSwitchTo(former);
            }
        }
        judge
    }

    /// Whether the row in the slot is live for this statement, or its transaction has locked
    /// it (C15).
    ///
    /// # Safety
    /// The slot holds a row of the table; reading it may raise.
    pub(super) unsafe fn is_live(&self, slot: *mut TupleTableSlot) -> bool {
        // SAFETY: as required of the caller.
        unsafe {
            self.is_live_by_clock(slot) && self.is_live_by_rules(slot)
                || row_locks::holds((*slot).tts_tableOid, (*slot).tts_tid)
        }
    }

    unsafe fn is_live_by_clock(&self, slot: *mut TupleTableSlot) -> bool {
        if self.ts == 0 {
            return true;
        }
        // SAFETY: columns of the table.
        unsafe {
            let ts = unguarded::slot_value(slot, self.ts).map(|ts| ts.value() as i64);
            let ttl = if self.ttl == 0 {
                None
            } else {
                unguarded::slot_value(slot, self.ttl).map(|ttl| ttl.value() as i32)
            };
            policy::is_live(ts, policy::effective_ttl(ttl, self.default_ttl), now())
        }
    }

    #[allow(
        ffi_unwind_calls,
        reason = "an error that unwinds from C is PostgreSQL's own longjmp"
    )]
    unsafe fn is_live_by_rules(&self, slot: *mut TupleTableSlot) -> bool {
        if self.by_rules.is_null() {
            return true;
        }
        // SAFETY: made for rows of the table.
        unsafe {
            let memory = (*self.context).ecxt_per_tuple_memory;
            unguarded::MemoryContextReset(memory);
            (*self.context).ecxt_scantuple = slot;
            let former = pg_sys::MemoryContextSwitchTo(memory);
            let live = unguarded::value_of(self.by_rules, self.context);
            pg_sys::MemoryContextSwitchTo(former);
            // An answer that does not come is not "expired".
            live.is_none_or(|live| live.value() as u8 != 0)
        }
    }
}

//! Whether a row of a table is live, asked row by row within a statement.

use crate::clock::execution;
use crate::clock::now::now;
use crate::pg::unguarded;
use crate::policy;
use crate::store::{TablePolicy, extension};
use crate::visibility::{self, row_locks};
use pgrx::pg_sys::{self, TupleTableSlot};

/// Tells live rows of one table from expired ones. Holds nothing that needs dropping, so that
/// PostgreSQL's errors may pass.
#[derive(Clone, Copy)]
pub(super) struct Liveness {
    default_ttl: Option<i32>,
    /// The column with the time of the last modification; 0 if rows do not expire by it.
    ts: i16,
    /// The column with the override; 0 for none.
    ttl: i16,
    /// The condition "live by all TTL indexes"; null if there are none.
    by_rules: *mut pg_sys::ExprState,
    context: *mut pg_sys::ExprContext,
}

impl Liveness {
    /// For a table in which nothing expires.
    pub(super) const NOTHING: Self = Self {
        default_ttl: None,
        ts: 0,
        ttl: 0,
        by_rules: core::ptr::null_mut(),
        context: core::ptr::null_mut(),
    };

    /// Allocated in the current memory context, which must live as long.
    ///
    /// # Safety
    /// Within a transaction.
    pub(super) unsafe fn of(policy: &TablePolicy) -> Self {
        let clock = policy.expiring_clock();
        let mut liveness = Self {
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
                liveness.by_rules = pg_sys::ExecPrepareExpr(condition, estate);
                liveness.context = pg_sys::MakePerTupleExprContext(estate);
                pg_sys::MemoryContextSwitchTo(former);
            }
        }
        liveness
    }

    /// Whether the row in the slot is live for this statement, or locked by this transaction
    /// (C15).
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

    /// # Safety
    /// As [`Self::is_live`].
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

    /// # Safety
    /// As [`Self::is_live`].
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
            // NULL means live.
            live.is_none_or(|live| live.value() as u8 != 0)
        }
    }
}

//! `ttl.free_expired_keys()`, the trigger's function.

use super::prepared::{self, Prepared};
use super::{lookup, row};
use crate::clock::now::present_stamp;
use crate::error::Error;
use crate::pg::{externs, fmgr, roles, unguarded};
use crate::{policy, settings};
use pgrx::PgSqlErrorCode;
use pgrx::pg_sys::{self, TriggerData};
use pgrx::prelude::*;

fmgr::finfo_v1!(pg_finfo_ttl_free_expired_keys);

/// `ttl.free_expired_keys() RETURNS trigger`: BEFORE INSERT OR UPDATE, for each row. Removes the
/// expired rows that hold a key of the new row (C6). Returns the new row as it is, or, if it had
/// to wait for another session, stamped with the time after the wait (C14). On a table without
/// TTL it does nothing.
///
/// Raises 39P01 if it is called in any other way, and what removing a row raises.
///
/// Unguarded, with nothing to drop: errors of DELETE triggers and of expressions in indexes keep
/// all their fields (`docs/decisions/0004-unguarded-trampolines.md`).
///
/// # Safety
/// Called by PostgreSQL's function manager.
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_free_expired_keys(
    fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: a trigger's context is its data, once checked; fn_extra is ours to use.
    unsafe {
        let data = (*fcinfo).context.cast::<TriggerData>();
        if !is_called_rightly(data) {
            refuse();
        }
        let call = (*fcinfo).flinfo;
        if (*call).fn_extra.is_null() {
            (*call).fn_extra = prepare_guarded((*data).tg_relation, (*call).fn_mcxt).cast();
        }
        let prepared = (*call).fn_extra.cast::<Prepared>();
        let updates = !(*data).tg_newtuple.is_null();
        let tuple = if updates {
            (*data).tg_newtuple
        } else {
            (*data).tg_trigtuple
        };
        let Some(plan) = (*prepared).plan.as_ref() else {
            return pg_sys::Datum::from(tuple);
        };
        let new = row::New::of(data);
        let waited = lookup::free_keys(&new, &*prepared);
        pg_sys::Datum::from(match plan.policy.clock {
            Some(clock) if waited => stamp_anew(&new, tuple, clock.ts.attno, updates),
            _ => tuple,
        })
    }
}

/// The new row as it is written after a wait: it counts from now on, or it might come expired. A
/// `_ts` that the statement has given stays.
///
/// # Safety
/// `tuple` is a row of the trigger's table, which has the column `ts`.
#[allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]
unsafe fn stamp_anew(
    new: &row::New,
    tuple: pg_sys::HeapTuple,
    ts: i16,
    updates: bool,
) -> pg_sys::HeapTuple {
    // SAFETY: as required of the caller.
    unsafe {
        let relation = new.relation;
        if settings::preserve_ts() || (!updates && keeps_times((*relation).rd_id)) {
            return tuple;
        }
        let start = policy::truncate_to_second(externs::GetCurrentStatementStartTimestamp());
        let present = present_stamp();
        let given = unguarded::slot_value(new.slot, ts).map(|given| given.value() as i64);
        if given.is_none_or(|given| given < start || given >= present) {
            return tuple;
        }
        let (column, mut value, mut null) = (i32::from(ts), pg_sys::Datum::from(present), false);
        unguarded::heap_modify_tuple_by_cols(
            tuple,
            (*relation).rd_att,
            1,
            &column,
            &mut value,
            &mut null,
        )
    }
}

#[pg_guard]
extern "C-unwind" fn keeps_times(relid: pg_sys::Oid) -> bool {
    roles::reads_physically(relid)
}

/// Whether it is called as a BEFORE trigger of INSERT or UPDATE, for a row.
///
/// # Safety
/// `data` is a function call's context: null or a node.
unsafe fn is_called_rightly(data: *mut TriggerData) -> bool {
    // SAFETY: as required of the caller.
    unsafe {
        if data.is_null() || (*data).type_ != pg_sys::NodeTag::T_TriggerData {
            return false;
        }
        let event = (*data).tg_event;
        let operation = event & pg_sys::TRIGGER_EVENT_OPMASK;
        let timing = event & pg_sys::TRIGGER_EVENT_TIMINGMASK;
        event & pg_sys::TRIGGER_EVENT_ROW != 0
            && timing == pg_sys::TRIGGER_EVENT_BEFORE
            && [pg_sys::TRIGGER_EVENT_INSERT, pg_sys::TRIGGER_EVENT_UPDATE].contains(&operation)
    }
}

#[pg_guard]
extern "C-unwind" fn refuse() {
    Error::new(
        PgSqlErrorCode::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
        "function \"ttl.free_expired_keys\" must be called as a trigger before the insertion or update of a row",
    )
    .hint("ttl.enable() makes the trigger where it is needed.")
    .raise()
}

/// # Safety
/// As [`prepared::prepare`].
#[pg_guard]
unsafe extern "C-unwind" fn prepare_guarded(
    relation: pg_sys::Relation,
    context: pg_sys::MemoryContext,
) -> *mut Prepared {
    // SAFETY: the executor's relation and the statement's memory context.
    unsafe { prepared::prepare(relation, context) }
}

//! `ttl.free_expired_keys()`, the trigger's function.

use super::prepared::{self, Prepared};
use super::{lookup, row};
use crate::error::TtlError;
use crate::pg::fmgr;
use pgrx::PgSqlErrorCode;
use pgrx::pg_sys::{self, TriggerData};
use pgrx::prelude::*;

fmgr::finfo_v1!(pg_finfo_ttl_free_expired_keys);

/// `ttl.free_expired_keys() RETURNS trigger`: BEFORE INSERT OR UPDATE, for each row.
/// Removes the expired rows that hold a key of the new row (C6) and returns it as it
/// is. On a table without a time to live it does nothing.
///
/// Raises 39P01 if it is called in any other way, and what removing a row raises.
///
/// Unguarded, with nothing to drop: errors of DELETE triggers and of expressions in
/// indexes keep all their fields (`docs/decisions/0004-unguarded-trampolines.md`).
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
            (*call).fn_extra = prepare((*data).tg_relation, (*call).fn_mcxt).cast();
        }
        let prepared = (*call).fn_extra.cast::<Prepared>();
        if !(*prepared).plan.is_null() {
            lookup::free_keys(&row::New::of(data), &*prepared);
        }
        let updates = !(*data).tg_newtuple.is_null();
        pg_sys::Datum::from(if updates {
            (*data).tg_newtuple
        } else {
            (*data).tg_trigtuple
        })
    }
}

/// Whether it is called as a BEFORE trigger for a row that is written.
unsafe fn is_called_rightly(data: *mut TriggerData) -> bool {
    // SAFETY: a function call's context is null or a node.
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
    TtlError::new(
        PgSqlErrorCode::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
        "function \"ttl.free_expired_keys\" must be called as a trigger before the insertion or update of a row",
    )
    .hint("ttl.enable() makes the trigger where it is needed.")
    .raise()
}

#[pg_guard]
unsafe extern "C-unwind" fn prepare(
    relation: pg_sys::Relation,
    context: pg_sys::MemoryContext,
) -> *mut Prepared {
    // SAFETY: the executor's relation and the statement's memory context.
    unsafe { prepared::prepare(relation, context) }
}

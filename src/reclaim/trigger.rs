//! `ttl.free_expired_keys()`, the trigger's function.

use crate::pg::fmgr;
use pgrx::pg_sys;
use pgrx::prelude::*;

fmgr::finfo_v1!(pg_finfo_ttl_free_expired_keys);

/// `ttl.free_expired_keys() RETURNS trigger`: BEFORE INSERT OR UPDATE, for each row.
/// Returns the new row as it is.
///
/// # Safety
/// Called by PostgreSQL's function manager.
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_free_expired_keys(
    fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: a trigger's context is its data.
    unsafe {
        let data = (*fcinfo).context.cast::<pg_sys::TriggerData>();
        let row = if (*data).tg_newtuple.is_null() {
            (*data).tg_trigtuple
        } else {
            (*data).tg_newtuple
        };
        pg_sys::Datum::from(row)
    }
}

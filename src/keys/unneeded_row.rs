//! `ttl.live_or_unneeded()`: for a DELETE that means to meet expired rows.
//!
//! A foreign key's cascade, and the extension's own DELETE in a session's transaction, delete
//! expired rows, and by further foreign keys the rows that refer to them. Rows of this
//! transaction must not go that way ([`super::same_xact_children`]).

use super::{removal, same_xact_children};
use crate::error::Error;
use crate::pg::{fmgr, nodes, relation};
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, pg_sys};

fmgr::finfo_v1!(pg_finfo_ttl_live_or_unneeded);

/// `ttl.live_or_unneeded(relation oid, place tid, live boolean) RETURNS boolean`: true. Raises
/// 23503 if the row is expired and its deletion would delete or change rows that this
/// transaction has made refer to it; 0A000 where the planner has not put it.
///
/// # Safety
/// Called by PostgreSQL's function manager with three arguments.
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_live_or_unneeded(
    fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: as declared in SQL; the statement that met the row there has locked the table.
    unsafe {
        if !nodes::is_called_by_filter(fcinfo) {
            Error::new(
                PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
                "ttl.live_or_unneeded() can be called only by the extension itself",
            )
            .raise();
        }
        let is_live = fmgr::arg(fcinfo, 2).is_none_or(|live| live.value() as u8 != 0);
        if let (false, Some(relid), Some(tid)) =
            (is_live, fmgr::arg(fcinfo, 0), fmgr::arg(fcinfo, 1))
        {
            let relid = pg_sys::Oid::from(relid.value() as u32);
            let tid = *tid.cast_mut_ptr::<pg_sys::ItemPointerData>();
            if same_xact_children::has_references(relid) {
                ask(relid, tid);
            }
        }
        pg_sys::Datum::from(true)
    }
}

/// # Safety
/// The transaction has locked the table.
unsafe fn ask(relid: pg_sys::Oid, mut tid: pg_sys::ItemPointerData) {
    let table = relation::Open::locked(relid);
    // SAFETY: as required of the caller; errors that pass here free the slot with its context.
    unsafe {
        let slot = pg_sys::table_slot_create(table.as_ptr(), core::ptr::null_mut());
        if removal::fetch(table.as_ptr(), slot, &mut tid) {
            same_xact_children::refuse(table.as_ptr(), slot, false);
        }
        pg_sys::ExecDropSingleTupleTableSlot(slot);
    }
}

//! `ttl_internal.live_or_unneeded()`: for a DELETE that means to meet expired rows.
//!
//! A foreign key's cascade, and the extension's own DELETE in a session's transaction, delete
//! expired rows, and by further foreign keys the rows that refer to them. Rows of this
//! transaction must not go that way ([`super::same_xact_children`]).

use super::same_xact_children;
use crate::error::Error;
use crate::pg::abi::fmgr;
use crate::pg::exec::call::Call;
use crate::pg::exec::table::Table;
use pgrx::pg_sys::{self, ItemPointerData, Oid};
use pgrx::prelude::*;

fmgr::finfo_v1!(pg_finfo_ttl_live_or_unneeded);

/// `ttl_internal.live_or_unneeded(relation oid, place tid, live boolean) RETURNS boolean`: true. Raises
/// 23503 if the row is expired and its deletion would delete or change rows that this
/// transaction has made refer to it; 0A000 where the planner has not put it.
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_live_or_unneeded(
    call: Call<'_, (Oid, ItemPointerData, bool)>,
) -> pg_sys::Datum {
    if !call.is_by_filter() {
        Error::unsupported(
            "ttl_internal.live_or_unneeded() can be called only by the extension itself",
        )
        .raise();
    }
    if let (Some(relid), Some(mut tid), Some(false)) = call.args()
        && same_xact_children::has_references(relid)
    {
        // The statement that met the row there has locked the table.
        Table::with_locked(relid, |table| {
            table.with_slot(|slot| {
                if slot.fetch(&mut tid) {
                    same_xact_children::refuse(slot, false);
                }
            });
        });
    }
    pg_sys::Datum::from(true)
}

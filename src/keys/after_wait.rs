//! The stamp of a row whose write had to wait for another session (C14).

use super::row::NewRow;
use crate::clock::now::present_stamp;
use crate::pg::abi::externs;
use crate::pg::catalog::roles;
use crate::store::Clock;
use crate::{policy, settings};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// The `_ts` with which the row is written after a wait, if it is another than it has: the row
/// counts from now on, or it might come expired. A `_ts` that the statement has given stays; one
/// that an UPDATE has left as recent is looked at again (C16).
pub(super) fn stamp(new: &NewRow<'_>, clock: &Clock, granularity: i32) -> Option<i64> {
    if settings::preserve_ts() || (new.is_inserted() && keeps_times(new.row.table().oid())) {
        return None;
    }
    let start = policy::truncate_to_second(externs::GetCurrentStatementStartTimestamp());
    let present = present_stamp();
    let ts = clock.ts.attno;
    let given = new.row.value(ts).map(|given| given.value() as i64);
    let ttl = clock.ttl.and_then(|ttl| new.row.value(ttl.attno));
    let ttl = ttl.map(|ttl| ttl.value() as i32);
    let is_left = granularity > 0 && new.keeps(ts);
    match given {
        Some(left) if is_left => {
            Some(policy::refreshed(given, ttl, granularity, present)).filter(|&time| time != left)
        }
        Some(given) if given >= start && given < present => Some(present),
        _ => None,
    }
}

#[pg_guard]
extern "C-unwind" fn keeps_times(relid: pg_sys::Oid) -> bool {
    roles::reads_physically(relid)
}

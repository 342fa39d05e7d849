//! `ttl.free_expired_keys()`, the trigger's function.

use super::row::NewRow;
use super::{key_lookup, prepared_plan};
use crate::clock::now::present_stamp;
use crate::error::Error;
use crate::pg::abi::{externs, fmgr};
use crate::pg::catalog::roles;
use crate::pg::exec::call::TriggerCall;
use crate::store::Clock;
use crate::{policy, settings};
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, pg_sys};

fmgr::finfo_v1!(pg_finfo_ttl_free_expired_keys);

/// `ttl.free_expired_keys() RETURNS trigger`: BEFORE INSERT OR UPDATE, for each row. Removes the
/// expired rows that hold a key of the new row (C6). Returns the new row as it is, or, if it had
/// to wait for another session, stamped with the time after the wait (C14). In the worker of a
/// subscription, an UPDATE that has come without a `_ts` is stamped. On a table without TTL it does nothing.
///
/// Raises 39P01 if it is called in any other way, and what removing a row raises.
///
/// Unguarded, with nothing to drop: errors of DELETE triggers and of expressions in indexes keep
/// all their fields (`docs/decisions/0004-unguarded-trampolines.md`).
// SAFETY: sql/functions.sql declares it as a trigger's function.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_free_expired_keys(call: TriggerCall<'_>) -> pg_sys::Datum {
    let Some(write) = call.before_write() else {
        refuse();
    };
    // SAFETY: the only thing that this function keeps.
    let prepared = unsafe { write.kept(|memory| prepared_plan::prepare(write.table(), memory)) };
    let Some(plan) = prepared.plan else {
        return pg_sys::Datum::from(write.tuple());
    };
    let new = NewRow::of(write);
    let waited = key_lookup::free_keys(&new, prepared, plan);
    let granularity = plan.policy.label.ts_granularity;
    let stamp = plan.policy.clock.and_then(|clock| {
        let time = if prepared.applies && write.is_update() && !write.assigns(clock.ts.attno) {
            stamp_of_change(&new, &clock, granularity)
        } else if waited {
            stamp_after_wait(&new, &clock, granularity)
        } else {
            None
        };
        time.map(|time| (clock.ts.attno, time))
    });
    pg_sys::Datum::from(match stamp {
        Some((ts, time)) => write.tuple_with(ts, time),
        None => write.tuple(),
    })
}

#[pg_guard]
extern "C-unwind" fn refuse() -> ! {
    Error::new(
        PgSqlErrorCode::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
        "function \"ttl.free_expired_keys\" must be called as a trigger before the insertion or update of a row",
    )
    .hint("ttl.enable() makes the trigger where it is needed.")
    .raise()
}

/// The `_ts` of a row that another server has updated, and whose `_ts` it has not sent: it has none, or does not publish it.
/// Else a row that is written to again and again would expire by the time of its insertion.
fn stamp_of_change(new: &NewRow<'_>, clock: &Clock, granularity: i32) -> Option<i64> {
    if settings::preserve_ts() {
        return None;
    }
    let given = new.row.value(clock.ts.attno);
    let given = given.map(|given| given.value() as i64);
    let ttl = clock.ttl.filter(|ttl| new.keeps(ttl.attno));
    // An UPDATE that sets the override always stamps (C16).
    let granularity = if ttl.is_none() && clock.ttl.is_some() {
        0
    } else {
        granularity
    };
    let ttl = ttl.and_then(|ttl| new.row.value(ttl.attno));
    let ttl = ttl.map(|ttl| ttl.value() as i32);
    Some(policy::refreshed(given, ttl, granularity, present_stamp()))
        .filter(|&time| Some(time) != given)
}

/// The `_ts` with which the row is written after a wait, if it is another than it has: the row
/// counts from now on, or it might come expired. A `_ts` that the statement has given stays; one
/// that an UPDATE has left as recent is looked at again (C16).
fn stamp_after_wait(new: &NewRow<'_>, clock: &Clock, granularity: i32) -> Option<i64> {
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

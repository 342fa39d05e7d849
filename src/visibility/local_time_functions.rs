//! The functions by which a date without a time zone becomes an instant (M13).
//!
//! They run once for each row, before those of [`super::index_filter`]. For as long as the zone's
//! difference from UTC is the same, that costs a comparison and a subtraction.

use crate::pg::abi::fmgr;
use crate::pg::catalog::local_time::Zone;
use crate::pg::exec::call::{Argument, Call, TextArgument};
use crate::policy::{self, SameOffset};
use crate::store::time_zone;
use pgrx::pg_sys;
use pgrx::prelude::*;

fmgr::finfo_v1!(
    pg_finfo_ttl_in_time_zone,
    pg_finfo_ttl_in_time_zone_date,
    pg_finfo_ttl_local_time,
);

/// What a call site keeps from row to row.
#[derive(Clone, Copy)]
struct CachedZone {
    /// The zone, if the query names it by a constant.
    zone: Option<Zone>,
    same: SameOffset,
}

const NOTHING: CachedZone = CachedZone {
    zone: None,
    same: SameOffset::NONE,
};

/// `ttl.in_time_zone(date timestamp, time_zone text) RETURNS timestamptz`: the instant at which clocks
/// in the zone show this time ([`policy::instant_of_local`]); NULL if there is no such zone. Also
/// for what `ttl.earliest` makes of an array. STRICT.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_in_time_zone(
    call: Call<'_, (i64, TextArgument<'_>)>,
) -> pg_sys::Datum {
    let (local, _) = call.args();
    instant(call, local)
}

/// `ttl.in_time_zone(date date, time_zone text) RETURNS timestamptz`: of midnight. STRICT.
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_in_time_zone_date(
    call: Call<'_, (i32, TextArgument<'_>)>,
) -> pg_sys::Datum {
    let (day, _) = call.args();
    instant(call, day.map(policy::instant_of_day))
}

/// Unguarded up to the look-up: an error for want of memory passes a frame with nothing to drop.
#[inline(always)]
fn instant<T: Argument>(
    call: Call<'_, (T, TextArgument<'_>)>,
    local: Option<i64>,
) -> pg_sys::Datum {
    let Some(local) = local else {
        return call.null();
    };
    // SAFETY: `fn_extra` of these functions holds this type, and nothing else.
    let kept = unsafe { call.kept(|_| NOTHING) };
    match kept.and_then(|kept| kept.get().same.instant(local)) {
        Some(instant) => pg_sys::Datum::from(instant),
        None => look_up(call, local),
    }
}

/// Looks the offset up, and keeps it if the zone is a constant.
#[pg_guard]
extern "C-unwind" fn look_up<T: Argument>(
    call: Call<'_, (T, TextArgument<'_>)>,
    local: i64,
) -> pg_sys::Datum {
    let (_, name) = call.args();
    // SAFETY: as above.
    let kept = unsafe { call.kept(|_| NOTHING) };
    let known = kept.and_then(|kept| kept.get().zone);
    let Some(zone) = known.or_else(|| named(name)) else {
        return call.null();
    };
    let clock = time_zone::clock(zone);
    let instant = policy::instant_of_local(local, clock);
    let is_constant = known.is_some() || call.is_constant(1);
    if let Some(kept) = kept.filter(|_| is_constant) {
        let mut same = kept.get().same;
        if ![policy::INFINITY, policy::MINUS_INFINITY].contains(&instant) {
            same = same.joined(policy::same_offset(local, clock));
        }
        let zone = Some(zone);
        kept.set(CachedZone { zone, same });
    }
    pg_sys::Datum::from(instant)
}

fn named(name: Option<TextArgument<'_>>) -> Option<Zone> {
    let name = name?.read_short()?;
    policy::is_zone_name(&name)
        .then(|| Zone::named(&name))
        .flatten()
}

/// `ttl.local_time(instant timestamptz, time_zone text) RETURNS timestamp`: what clocks in the zone
/// show then; NULL if there is no such zone. STRICT.
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) extern "C-unwind" fn ttl_local_time(
    call: Call<'_, (i64, TextArgument<'_>)>,
) -> pg_sys::Datum {
    let (instant, name) = call.args();
    match instant.zip(named(name)) {
        Some((instant, zone)) => {
            let local = policy::local_of_instant(instant, time_zone::clock(zone));
            pg_sys::Datum::from(local)
        }
        None => call.null(),
    }
}

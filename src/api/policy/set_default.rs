//! `ttl.set_default`.

use super::mass_expiry::{Consent, shown};
use super::{building, guard, write_label};
use crate::ddl::purge_before_change;
use crate::error::{Error, Result};
use crate::keys::trigger_placement;
use crate::pg::abi::report::or_raise;
use crate::policy::Policy;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// `ttl.set_default(rel, default_ttl, revive_expired, confirm)` (C8, C19); NULL turns TTL off (C9).
/// Rows that the change would revive are deleted first, unless `revive_expired` is true.
#[pg_extern(sql = false)]
fn set_default(
    rel: Option<pg_sys::Oid>,
    default_ttl: Option<i32>,
    revive_expired: Option<bool>,
    confirm: Option<bool>,
) {
    guard::check_writable(c"ttl.set_default()");
    or_raise(guard::required(rel, "rel").and_then(|relid| {
        let revive_expired = guard::required(revive_expired, "revive_expired")?;
        let revives = if revive_expired {
            ", revive_expired => true"
        } else {
            ""
        };
        let value = default_ttl.map_or("NULL".to_owned(), |seconds| seconds.to_string());
        let consent = Consent::new(
            confirm,
            &format!("ttl.set_default({}, {value}{revives}", shown(relid)),
        )?;
        change_default(relid, default_ttl, None, revive_expired, &consent)
    }));
}

/// `hidden` stays as it is if it is `None`.
pub(in crate::api) fn change_default(
    relid: pg_sys::Oid,
    default_ttl: Option<i32>,
    hidden: Option<bool>,
    revive_expired: bool,
    consent: &Consent,
) -> Result<()> {
    let default_ttl = default_ttl.map(Policy::check_default_ttl).transpose()?;
    match default_ttl {
        Some(_) => guard::check_changeable(relid)?,
        None => guard::check_change(relid)?,
    }
    let present = guard::present_policy(relid)?;
    if present.ts_column.is_none() && default_ttl.is_some() {
        return Err(Error::no_clock(relid));
    }
    let was_off = present.default_ttl.is_none();
    if was_off && default_ttl.is_some() {
        let resulting = || {
            let present = guard::present_policy(relid)?;
            write_label::fitting(
                relid,
                Policy {
                    default_ttl,
                    hidden: hidden.unwrap_or(present.hidden),
                    ..present
                },
            )
        };
        return building::apply(relid, resulting, consent);
    }
    guard::lock(relid, pg_sys::ShareUpdateExclusiveLock);
    let present = guard::present_policy(relid)?;
    let mut policy = match default_ttl {
        None => {
            write_label::tell_of_rules(relid, &present);
            present.turned_off()
        }
        Some(_) => write_label::fitting(
            relid,
            Policy {
                default_ttl,
                hidden: hidden.unwrap_or(present.hidden),
                ..present
            },
        )?,
    };
    if !revive_expired {
        purge_before_change::prevent(relid, Some(&policy), pg_sys::RowExclusiveLock)?;
    }
    write_label::change(relid, &mut policy, consent)?;
    trigger_placement::sync(relid);
    Ok(())
}

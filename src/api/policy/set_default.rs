//! `ttl.set_default`.

use super::disable::{Removal, turn_off};
use super::mass_expiry::{Consent, shown};
use super::{building, guard, write_label};
use crate::error::{Error, Result};
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
        match default_ttl {
            Some(seconds) => change_default(relid, seconds, None, revive_expired, &consent),
            None => turn_off(relid, Removal::Nothing, revive_expired),
        }
    }));
}

/// `hidden` stays as it is if it is `None`.
pub(in crate::api) fn change_default(
    relid: pg_sys::Oid,
    default_ttl: i32,
    hidden: Option<bool>,
    revive_expired: bool,
    consent: &Consent,
) -> Result<()> {
    Policy::check_default_ttl(default_ttl)?;
    guard::check_changeable(relid)?;
    let present = guard::present_policy(relid)?;
    if present.ts_column.is_none() {
        return Err(Error::no_clock(relid));
    }
    let changed = |present: Policy| Policy {
        default_ttl: Some(default_ttl),
        hidden: hidden.unwrap_or(present.hidden),
        ..present
    };
    if present.default_ttl.is_none() {
        let resulting = || {
            let policy = changed(guard::present_policy(relid)?);
            write_label::fitting(relid, policy)
        };
        return building::apply(relid, resulting, consent);
    }
    write_label::replace(relid, revive_expired, consent, |present| {
        Ok(changed(present))
    })
}

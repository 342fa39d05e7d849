//! `ttl.set_option`: a table's options by name.

use super::disable::{Removal, turn_off};
use super::mass_expiry::{Consent, shown};
use super::set_default::change_default;
use super::{cluster, guard, seconds_type, write_label};
use crate::error::{Error, Result};
use crate::pg::abi::encoding;
use crate::pg::abi::report::or_raise;
use crate::pg::abi::values::{self, Text};
use crate::pg::catalog::quote_literal;
use crate::policy::{OPTIONS, Policy, TableOption, Value, Window, option};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// `ttl.set_option(rel, option, value, revive_expired, confirm)` (C20): sets an option of a table
/// that has TTL; NULL gives it the value that it has unless it is set. Raises 22023 for names and
/// values that are none, 42501 for others than the owner, 55000 if the table has no TTL. Rows that
/// the change would revive are deleted first, unless `revive_expired` is true.
#[pg_extern(sql = false)]
fn set_option(
    rel: Option<pg_sys::Oid>,
    option: Option<Text>,
    value: Option<Text>,
    revive_expired: Option<bool>,
    confirm: Option<bool>,
) {
    guard::check_writable(c"ttl.set_option()");
    or_raise((|| {
        let relid = guard::required(rel, "rel")?;
        let option = known(&guard::required(option, "option")?.0)?;
        let revive_expired = guard::required(revive_expired, "revive_expired")?;
        let value = value.as_ref().map(|text| text.0.as_str());
        let call = format!(
            "ttl.set_option({}, {}, {}{}",
            shown(relid),
            quote_literal(option.name),
            value.map_or("NULL".to_owned(), quote_literal),
            if revive_expired {
                ", revive_expired => true"
            } else {
                ""
            }
        );
        let consent = Consent::new(confirm, &call)?;
        change(relid, option, value, revive_expired, &consent)
    })());
}

/// The option of that name; raises 22023 if there is none.
pub(crate) fn known(name: &str) -> Result<&'static TableOption> {
    let settable = option(name).filter(|option| option.is_settable());
    settable.ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Error {
    let settable = OPTIONS.iter().filter(|option| option.is_settable());
    let names: Vec<_> = settable.map(|option| option.name).collect();
    Error::invalid(format!("unrecognized option of a time to live: \"{name}\""))
        .hint(format!("Available options: {}.", names.join(", ")))
}

/// Sets the option of a table that has TTL.
pub(crate) fn change(
    relid: pg_sys::Oid,
    option: &TableOption,
    value: Option<&str>,
    revive_expired: bool,
    consent: &Consent,
) -> Result<()> {
    let change: Box<dyn Fn(&mut Policy) + '_> = match option.value {
        Value::Default => {
            let Some(seconds) = value.map(read_seconds).transpose()? else {
                return turn_off(relid, Removal::Nothing, revive_expired);
            };
            return change_default(relid, seconds, None, revive_expired, consent);
        }
        Value::Seconds(put) => {
            let seconds = value.map(read_seconds).transpose()?;
            Box::new(move |policy| put(policy, seconds))
        }
        Value::Boolean(put) => {
            let value = value
                .map(|value| read_boolean(option.name, value))
                .transpose()?;
            Box::new(move |policy| put(policy, value))
        }
        Value::Text(put) => Box::new(move |policy| put(policy, value)),
        Value::Built => return Err(unknown(option.name)),
        Value::Window(put) => {
            let window = value.map(Window::parse).transpose()?;
            Box::new(move |policy| put(policy, window))
        }
    };
    write_label::replace(relid, revive_expired, consent, |mut policy| {
        let dropped_partitions = policy.drop_partitions;
        change(&mut policy);
        if policy.drop_partitions {
            guard::require_partitioned(relid)?;
        } else if dropped_partitions {
            cluster::check_partitions(relid, false)?;
        }
        Ok(policy)
    })
}

pub(super) fn read_seconds(value: &str) -> Result<i32> {
    seconds_type::read(&encoding::query(value))
}

fn read_boolean(option: &str, value: &str) -> Result<bool> {
    values::boolean(&encoding::query(value)).ok_or_else(|| {
        Error::invalid(format!(
            "invalid value for option \"{option}\": \"{value}\""
        ))
        .detail("It is true or false.")
        .hint("NULL sets the option to its default.")
    })
}

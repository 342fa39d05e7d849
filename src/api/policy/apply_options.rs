//! What CREATE TABLE and ALTER TABLE ask by options `ttl.*` (C32), done as the functions do it.

use super::disable::{Removal, turn_off};
use super::enable::{index_method, turn_on};
use super::enable_arguments::Asked;
use super::guard;
use super::mass_expiry::Consent;
use super::set_default::change_default;
use super::set_option::{self, read_seconds};
use crate::ddl::with_options::RequestedOptions;
use crate::error::{Error, Result};
use crate::pg::catalog::{self, qualified_name};
use crate::pg::session::xact;
use crate::policy::TableOptions;
use pgrx::pg_sys;

/// Does what a statement asks, once it has run.
pub(crate) fn carry_out(asked: &RequestedOptions) -> Result<()> {
    // Rows of CREATE TABLE AS are newer than the statement's snapshot.
    xact::with_latest_snapshot(|| follow(asked.table, &asked.options, asked.is_new))
}

fn follow(relid: pg_sys::Oid, options: &TableOptions, is_new: bool) -> Result<()> {
    guard::check_change(relid)?;
    let present = guard::own_policy(relid)?;
    let consent = Consent {
        confirmed: options.confirm,
        how: how_to_confirm(relid, options, is_new),
    };
    let has_default = present
        .as_ref()
        .is_some_and(|policy| policy.default_ttl.is_some());
    let given = options.get("default_ttl");
    let default_ttl = given.flatten().map(default_ttl).transpose()?;
    let is_on = has_default || default_ttl.is_some();
    if !is_on {
        // A table without a policy has no options, one without a default no columns.
        let refused = match present {
            Some(_) => options.first_built(),
            None => options.first_set(),
        };
        if let Some(name) = refused {
            return Err(needs_default(relid, name, present.is_some()));
        }
    }
    if present.is_none() && !is_on {
        // As for PostgreSQL's own options, there may be nothing to reset.
        return Ok(());
    }
    check_resets(options)?;
    let enables = is_on && options.enables();
    if enables {
        if let Some(default_ttl) = default_ttl.filter(|_| has_default && options.revive_expired) {
            change_default(relid, default_ttl, None, true, &consent)?;
        }
        set(relid, default_ttl, options, &consent)?;
    }
    for (option, value) in options.others(enables) {
        set_option::change(relid, option, value, options.revive_expired, &consent)?;
    }
    if given == Some(None) {
        turn_off(relid, Removal::Nothing, options.revive_expired)?;
    }
    Ok(())
}

/// Sets what is given; the rest stays, or is as `ttl.enable` has it by default.
fn set(
    relid: pg_sys::Oid,
    default_ttl: Option<i32>,
    options: &TableOptions,
    consent: &Consent,
) -> Result<()> {
    let index = options.value("index", "auto").map(index_method);
    let granularity = options
        .value("ts_granularity", "0")
        .map(read_seconds)
        .transpose()?;
    let asked = Asked {
        default_ttl,
        // Never none: a column may have that name.
        ts_column: options.get("ts_column").flatten().map(str::to_owned),
        ttl_column: options.column("ttl_column"),
        document_column: options.column("document_column"),
        index: index.transpose()?,
        drop_partitions: options.flag("drop_partitions", false)?,
        hidden: options.flag("hidden", true)?,
        ts_granularity: granularity,
        concurrently: false,
    };
    turn_on(relid, &asked, consent).map(|_is_new| ())
}

fn default_ttl(text: &str) -> Result<i32> {
    if text.eq_ignore_ascii_case("null") {
        return Err(TableOptions::no_value("default_ttl").hint(
            "Use RESET (ttl.default_ttl) to turn TTL off, or -1 for TTL without a default.",
        ));
    }
    read_seconds(text)
}

/// Columns have no default to go back to.
fn check_resets(options: &TableOptions) -> Result<()> {
    for name in ["ts_column", "ttl_column", "document_column"] {
        if options.get(name) == Some(None) {
            let message = format!("cannot reset parameter \"ttl.{name}\"");
            return Err(
                Error::unsupported(message)
                    .detail("The rows' time to live is in the table's columns.")
                    .hint("To give a column another name, rename it. To remove it, use ttl.disable() with drop_columns."),
            );
        }
    }
    Ok(())
}

fn needs_default(relid: pg_sys::Oid, name: &str, has_policy: bool) -> Error {
    let table = qualified_name(relid);
    let message = format!("parameter \"ttl.{name}\" needs a time to live on table {table}");
    Error::not_ready(message)
        .detail(if has_policy {
            "Its time to live has no default: it is off, or by TTL indexes only."
        } else {
            "It has none."
        })
        .hint("Give \"ttl.default_ttl\" in the same list, such as '30 days', or -1 for none.")
}

/// How to confirm, for the end of a HINT's sentence.
fn how_to_confirm(relid: pg_sys::Oid, options: &TableOptions, is_new: bool) -> String {
    if is_new {
        let flag = TableOptions::flag_is_true("confirm");
        return format!("add {flag} to the list after WITH.");
    }
    let table = qualified_name(relid);
    let actions = options.confirmed(catalog::quote_literal);
    format!("run: ALTER TABLE {table} {actions};")
}

//! `ttl.enable`.

use super::building::apply;
use super::enable_arguments::Asked;
use super::mass_expiry::Consent;
use super::set_default::change_default;
use super::{
    adoption, cluster, consequences, document_column, guard, indexes, override_default, write_label,
};
use crate::error::{Error, Result};
use crate::pg::abi::encoding;
use crate::pg::abi::report::or_raise;
use crate::pg::abi::values::Text;
use crate::pg::catalog::{self, qualified_name};
use crate::policy::{IndexMethod, Policy};
use crate::store::missing_index;
use pgrx::pg_sys;
use pgrx::prelude::*;
use std::ffi::CStr;

/// `ttl.enable(rel, default_ttl, ts_column, ttl_column, document_column, index, drop_partitions,
/// hidden, ts_granularity, confirm, concurrently)` (C2, C3, C11, C16, C19, C21, D1, M11). An argument that is
/// not given, which for columns is an empty name, keeps what the table has. Expired rows are deleted
/// before a change that would revive them.
#[pg_extern(sql = false)]
#[allow(
    clippy::too_many_arguments,
    reason = "the arguments of the SQL function"
)]
fn enable(
    rel: Option<pg_sys::Oid>,
    default_ttl: Option<i32>,
    ts_column: Option<&CStr>,
    ttl_column: Option<&CStr>,
    document_column: Option<&CStr>,
    index: Option<Text>,
    drop_partitions: Option<bool>,
    hidden: Option<bool>,
    ts_granularity: Option<i32>,
    confirm: Option<bool>,
    concurrently: Option<bool>,
) {
    guard::check_writable(c"ttl.enable()");
    let given = |column: Option<&CStr>| match column.map(encoding::from_server) {
        Some(name) if name.is_empty() => None,
        column => Some(column),
    };
    let index = index.map(|name| index_method(&name.0)).transpose();
    let asked = Asked {
        default_ttl,
        ts_column: or_raise(
            given(ts_column)
                .map(|name| guard::required(name, "ts_column"))
                .transpose(),
        ),
        ttl_column: given(ttl_column),
        document_column: given(document_column),
        index: or_raise(index),
        drop_partitions,
        hidden,
        ts_granularity,
        concurrently: or_raise(guard::required(concurrently, "concurrently")),
    };
    let rel = or_raise(guard::required(rel, "rel"));
    or_raise(asked.consent(rel, confirm).and_then(|consent| {
        let is_new = turn_on(rel, &asked, &consent)?;
        if default_ttl.is_none() && is_new {
            without_default(rel);
        }
        Ok(())
    }));
}

impl Asked {
    /// The policy that follows: what is not given is as at present, or as a new policy has it. A table that has TTL keeps its
    /// columns.
    fn resulting(&self, relid: pg_sys::Oid, present: Option<Policy>) -> Result<Policy> {
        if present.is_none() {
            refuse_partition(relid)?;
        }
        let former = present.clone().filter(|it| it.ts_column.is_some());
        let mut policy = present.unwrap_or_default();
        if former.is_none() {
            // So far its rows expire by TTL indexes only.
            let usual = Policy::default();
            policy.ts_column = usual.ts_column;
            policy.ttl_column = usual.ttl_column;
            policy.index = usual.index;
        }
        policy.ts_column = self.ts_column.clone().or(policy.ts_column);
        if let Some(column) = &self.document_column {
            policy.document_column = column.clone();
        }
        if let Some(column) = &self.ttl_column {
            policy.ttl_column = column.clone();
        } else if policy.document_column.is_some() && policy.ttl_column.is_none() {
            // D1: a document needs one.
            policy.ttl_column = Policy::default().ttl_column;
        }
        policy.index = self.index.unwrap_or(policy.index);
        policy.drop_partitions = self.drop_partitions.unwrap_or(policy.drop_partitions);
        policy.ts_granularity = self.ts_granularity.unwrap_or(policy.ts_granularity);
        policy.hidden = self.hidden.unwrap_or(policy.hidden);
        policy.default_ttl = self.default_ttl.or(policy.default_ttl).or(Some(-1));
        policy.build_pending = self.concurrently;
        match former {
            Some(former) if has_other_columns(&former, &policy) => {
                Err(other_columns(relid, &former))
            }
            _ => write_label::fitting(relid, policy),
        }
    }
}

/// Turns TTL on or changes it; returns whether the table had no default before.
pub(in crate::api) fn turn_on(
    relid: pg_sys::Oid,
    asked: &Asked,
    consent: &Consent,
) -> Result<bool> {
    asked
        .default_ttl
        .map(Policy::check_default_ttl)
        .transpose()?;
    guard::check_changeable(relid)?;
    cluster::check_node(relid, "ttl.enable()")?;
    let present = guard::own_policy(relid)?;
    let is_new = present
        .as_ref()
        .is_none_or(|policy| policy.default_ttl.is_none());
    let wanted = asked.resulting(relid, present)?;
    cluster::check_partitions(relid, wanted.drop_partitions)?;
    if wanted.build_pending {
        let hint = "Build the index first, by CREATE INDEX CONCURRENTLY on (ttl.expiry_key(_ts, ttl)); ttl.enable() then uses it.";
        cluster::refuse_on_shell(relid, "concurrently", hint)?;
    }
    if wanted.drop_partitions {
        guard::require_partitioned(relid)?;
    }
    if asked.concurrently {
        guard::refuse_hypertable(relid)?;
    }
    let resulting = || {
        let mut policy = asked.resulting(relid, guard::own_policy(relid)?)?;
        // A table that is small enough to be read is small enough for its constraint to be checked.
        policy.build_pending = policy.build_pending
            && (policy.index == IndexMethod::None || missing_index::are_wanted(relid, &policy));
        Ok(policy)
    };
    let adopted = adoption::look(relid, asked, consent)?;
    let default = match is_new {
        true => override_default::check(relid, &wanted)?,
        false => None,
    };
    let added = consequences::new_columns(relid, &wanted);
    apply(relid, resulting, consent)?;
    if let Some(adopted) = adopted {
        adopted.notice();
    }
    if asked.concurrently && asked.index.is_none() {
        nothing_to_build(relid)?;
    }
    if asked.index.is_some() {
        indexes::tell_of_unneeded(relid)?;
    }
    if is_new {
        if let Some(default) = default {
            default.notice();
        }
        let is_indexed = missing_index::are_wanted(relid, &wanted);
        let unindexed = wanted.ts_column.as_deref().filter(|_| !is_indexed);
        consequences::tell(relid, &added, unindexed)?;
    }
    Ok(is_new)
}

/// Turns TTL on with this default and this kind of index, or changes the table's default; and `hidden`, unless it is
/// `None`.
pub(in crate::api) fn enable_or_change(
    relid: pg_sys::Oid,
    default_ttl: i32,
    index: IndexMethod,
    hidden: Option<bool>,
    consent: &Consent,
) -> Result<()> {
    let present = guard::own_policy(relid)?;
    if present.is_some_and(|policy| policy.ts_column.is_some()) {
        return change_default(relid, default_ttl, hidden, false, consent);
    }
    // The command does not mention the rest, which stays as it is.
    let asked = Asked {
        default_ttl: Some(default_ttl),
        index: Some(index),
        hidden,
        ..Asked::default()
    };
    let consent = asked.consent(relid, Some(consent.confirmed))?;
    turn_on(relid, &asked, &consent).map(|_is_new| ())
}

/// W7: says that a call without `index` keeps `none`, which leaves nothing to build.
fn nothing_to_build(relid: pg_sys::Oid) -> Result<()> {
    if guard::own_policy(relid)?.is_some_and(|policy| policy.index == IndexMethod::None) {
        let table = qualified_name(relid);
        Error::for_notice(format!("table {table} gets no index for deletion"))
            .detail("Its time to live has index => 'none', which a call without \"index\" keeps.")
            .hint(format!(
                "To build one in the background, run: SELECT ttl.enable({}, index => 'btree', concurrently => true);",
                catalog::quote_literal(&table)
            ))
            .notice();
    }
    Ok(())
}

/// W7: says that nothing will expire.
fn without_default(relid: pg_sys::Oid) {
    let table = qualified_name(relid);
    let notice = Error::for_notice(format!("table {table} has no default time to live"));
    notice
        .detail("Only rows with a time to live of their own expire.")
        .hint(format!(
            "To let all other rows expire a day after their last modification, run: SELECT ttl.set_default({}, '1 day');",
            catalog::quote_literal(&table)
        ))
        .notice();
}

pub(in crate::api) fn index_method(name: &str) -> Result<IndexMethod> {
    IndexMethod::from_name(name).ok_or_else(|| {
        let message = format!("unrecognized value for argument \"index\": \"{name}\"");
        Error::invalid(message).hint("Available values: auto, btree, none.")
    })
}

/// Whether the columns that are asked for are not those of the present policy.
fn has_other_columns(present: &Policy, wanted: &Policy) -> bool {
    let replaces_override = document_column::replaces_override(present, wanted);
    wanted.ts_column != present.ts_column
        || wanted.ttl_column != present.ttl_column
            && !(replaces_override && present.ttl_column.is_none())
        || wanted.document_column != present.document_column && !replaces_override
}

fn other_columns(relid: pg_sys::Oid, present: &Policy) -> Error {
    let table = qualified_name(relid);
    let message = format!("table {table} has a time to live with other columns");
    Error::not_ready(message)
    .detail(format!(
        "Its columns are {}.",
        present.columns().collect::<Vec<_>>().join(", ")
    ))
    .hint(format!(
        "To give a column another name, rename it: the time to live follows. To begin anew with other columns, end this one first: SELECT ttl.disable({}, drop_columns => true) drops the columns that ttl.enable added, with their values.",
        catalog::quote_literal(&table)
    ))
}

fn refuse_partition(relid: pg_sys::Oid) -> Result<()> {
    if !catalog::is_partition(relid) {
        return Ok(());
    }
    let message = format!(
        "cannot set a time to live on partition {}",
        qualified_name(relid)
    );
    Err(Error::wrong_kind(message)
        .detail("Rows that are written through the partitioned table would not be stamped.")
        .hint("Set it on the partitioned table; it holds for all partitions."))
}

//! `ttl.problems`: what keeps the keys of expired rows from being reusable.

use crate::api::policy::problem::Problem;
use crate::citus;
use crate::keys::{TRIGGER_NAME, trigger_placement};
use crate::pg::abi::encoding;
use crate::pg::catalog::{self, qualified_name, quote_identifier, quote_literal};
use crate::pg::catalog::{index, timescale, triggers};
use crate::policy::Policy;
use crate::store::cache;
use pgrx::pg_sys;
use std::cell::LazyCell;

/// The problems of the labelled table and of all that follow its policy. The caller has checked
/// that TTL is on.
pub(in crate::api) fn of(labelled_table: pg_sys::Oid, policy: &Policy) -> Vec<Problem> {
    let follows = |table: &pg_sys::Oid| {
        cache::policy(*table).is_some_and(|p| p.labelled_table == labelled_table)
    };
    // TimescaleDB makes the triggers of a new chunk, and none of them ALWAYS; nor does it let changes be
    // replayed in its tables.
    let is_hypertable = LazyCell::new(|| timescale::is_hypertable(labelled_table));
    let is_new_chunk = |table| trigger_placement::has_on_origin(table) && *is_hypertable;
    citus::with_shards(&[labelled_table])
        .into_iter()
        .filter(follows)
        .flat_map(|table| {
            missing(table, labelled_table, policy)
                .filter(|_| !is_new_chunk(table))
                .into_iter()
                .chain(too_late(table))
        })
        .collect()
}

fn missing(table: pg_sys::Oid, labelled_table: pg_sys::Oid, policy: &Policy) -> Option<Problem> {
    if !trigger_placement::is_needed(table) {
        return None;
    }
    let name = quote_identifier(TRIGGER_NAME);
    let shown = qualified_name(table);
    if trigger_placement::has_enabled(table) {
        return None;
    }
    if trigger_placement::has(table) {
        let statement = format!("ALTER TABLE {shown} ENABLE ALWAYS TRIGGER {name}");
        let text = format!(
            "trigger {name} of {shown} is not enabled ALWAYS: keys of expired rows are not free; {statement} enables it"
        );
        return Some(Problem::new(text).with_statement(statement + ";"));
    }
    // A partition gets its trigger from its parent.
    let is_partition = catalog::class(table).is_some_and(|class| class.is_partition);
    let mut above = catalog::parents(table).into_iter();
    if is_partition
        && above
            .any(|parent| trigger_placement::is_needed(parent) && !trigger_placement::has(parent))
    {
        return None;
    }
    let holder_name = quote_literal(&qualified_name(labelled_table));
    let remedy = if policy.restored {
        format!("SELECT ttl.resume({holder_name})")
    } else if let (None, Some(rule)) = (policy.default_ttl, policy.rules.first()) {
        // Not `ttl.enable`: overrides, which do not count now, would.
        let index = catalog::quote_literal(&index::qualified_name(labelled_table, &rule.index));
        format!(
            "SELECT ttl.expire_index({index}, {})",
            rule.expire_after_seconds
        )
    } else {
        format!("SELECT ttl.enable({holder_name})")
    };
    let text = format!(
        "trigger {name} of {shown} is missing: keys of expired rows are not free; {remedy} creates it"
    );
    Some(Problem::new(text).with_statement(remedy + ";"))
}

/// BEFORE triggers that fire after the extension's trigger, which therefore does not see keys they
/// set.
fn too_late(table: pg_sys::Oid) -> Vec<Problem> {
    if !trigger_placement::has(table) {
        return vec![];
    }
    let name = TRIGGER_NAME.as_bytes();
    triggers::of(table)
        .into_iter()
        .filter(|other| !other.is_clone && other.name.as_slice() > name)
        .filter(triggers::Trigger::sees_row_before_write)
        .map(|other| {
            let renamed = quote_identifier(&name_before(&other.name));
            let other = quote_identifier(&shown(&other.name));
            let table = qualified_name(table);
            let text = format!(
                "trigger {other} of {table} fires after {}: a key that it sets is not free",
                quote_identifier(TRIGGER_NAME)
            );
            Problem::new(text).with_statement(format!(
                "ALTER TRIGGER {other} ON {table} RENAME TO {renamed};"
            ))
        })
        .collect()
}

/// The trigger's name, so that it fires before the extension's, and after others of ASCII names: `}` is right
/// before `~`. PostgreSQL cuts a name that is too long.
fn name_before(name: &[u8]) -> String {
    format!("}}{}", shown(name))
}

fn shown(name: &[u8]) -> String {
    std::ffi::CString::new(name).map_or(String::new(), |name| encoding::from_server(&name))
}

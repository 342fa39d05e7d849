//! `ttl_internal.standing`: the state of deletion in a table, for the view `ttl.tables`.

use super::disclosure::{shows_errors, shows_figures};
use super::stats;
use crate::pg::abi::values::Json;
use crate::pg::server::background;
use crate::pg::session::contained_errors;
use crate::policy::{IndexMethod, Policy, lagging};
use crate::settings;
use crate::store::paused_tables;
use crate::store::{cache, missing_index};
use crate::worker::builder::{self, BuildNeed, BuildState};
use crate::worker::shared::deletion_state::{self, Figures, Halt};
use pgrx::pg_sys;
use pgrx::prelude::*;
use serde_json::{Value, json};

/// `ttl_internal.standing(rel) RETURNS jsonb`: whether there is a worker and, for users who may see the
/// table's figures, the next expiry and the backlog; NULL if nothing expires by a label of the table.
#[pg_extern(sql = false)]
fn standing(rel: pg_sys::Oid) -> Option<Json> {
    contained_errors::contain(|| of(rel))
        .ok()
        .flatten()
        .map(Json)
}

fn of(rel: pg_sys::Oid) -> Option<Value> {
    let policy = cache::own_label(rel).filter(|policy| policy.is_on())?;
    let halt = deletion_state::halted();
    let figures = stats::figures_of(rel, &policy, halt.is_some()).filter(|_| shows_figures(rel));
    // Deletion counts from when a row is to be deleted.
    let expiry = |figures: Figures| match figures.oldest_expiry {
        0 => 0,
        deletion => lagging(deletion, policy.keep_expired),
    };
    let waits_until = policy.waits_until(background::now(), settings::change_delay());
    Some(json!({
        "next_expiry": figures.and_then(|figures| stats::instant(expiry(figures))),
        "waits_until": waits_until.and_then(stats::instant),
        "backlog": figures.and_then(|figures| figures.backlog),
        "worker": worker(&policy, halt),
        "index_state": index_state(rel, &policy),
    }))
}

/// How the indexes for deletion stand (C21).
fn index_state(rel: pg_sys::Oid, policy: &Policy) -> Option<String> {
    let columns = cache::policy(rel).filter(|columns| columns.needs_clock());
    let need = columns
        .as_ref()
        .map_or(BuildNeed::None, |_| need(rel, policy));
    let is_missing = columns.is_some_and(|columns| {
        columns
            .clock
            .is_some_and(|clock| missing_index::missing(rel, policy, clock).is_some())
    });
    let standing = match builder::standing(rel) {
        // The message may quote rows.
        BuildState::Failed(_) if !shows_errors(rel) => {
            BuildState::Failed("its owner sees why".to_owned())
        }
        standing => standing,
    };
    need.state(is_missing, standing)
}

/// Whether the table is to have indexes for deletion (C11).
pub(super) fn need(rel: pg_sys::Oid, policy: &Policy) -> BuildNeed {
    match policy.index {
        IndexMethod::None => BuildNeed::Never,
        _ if policy.build_pending => BuildNeed::Pending,
        IndexMethod::Auto if builder::is_wanted(rel) => BuildNeed::Pending,
        IndexMethod::Auto => BuildNeed::Later,
        IndexMethod::Btree => BuildNeed::Now,
    }
}

/// Whether a worker deletes, in one or two words; `ttl.problems` has the details.
fn worker(policy: &Policy, halt: Option<Halt>) -> &'static str {
    let resting = paused_tables::at(policy.rest(), background::now());
    match halt {
        Some(Halt::Standby) => "standby",
        Some(Halt::Off) => "off",
        Some(Halt::Recovered) => "recovered",
        Some(Halt::Template) => "template",
        Some(Halt::NoLauncher) => "no launcher",
        Some(Halt::NoSlot) => "no slot",
        None if policy.restored => "waits for ttl.resume",
        None if resting.is_some_and(|resting| resting.paused) => "paused",
        None if resting.is_some() => "outside delete_between",
        None if deletion_state::is_worked_on() => "running",
        // The launcher starts one when something is due.
        None => "sleeping",
    }
}

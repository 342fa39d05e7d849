//! `ttl.reset_stats`. Who may call it is a matter of GRANT, as for PostgreSQL's own.

use super::guard;
use crate::error::Result;
use crate::pg::abi::report::or_raise;
use crate::pg::server::background;
use crate::store::{all_labels, label_provider};
use crate::worker::queue::quota::Claimant;
use crate::worker::shared::{places, state};
use pgrx::pg_sys;
use pgrx::prelude::*;

/// `ttl.reset_stats(rel)`: sets the counters of a table with a policy to zero; of all in this
/// database for NULL.
#[pg_extern(sql = false)]
fn reset_stats(rel: Option<pg_sys::Oid>) {
    or_raise(reset(rel));
}

fn reset(rel: Option<pg_sys::Oid>) -> Result<()> {
    let labelled = all_labels()
        .into_iter()
        .map(|(labelled_table, _)| labelled_table);
    let tables: Vec<(u32, Claimant)> = labelled
        .filter(|table| rel.is_none_or(|rel| *table == rel))
        .filter_map(|table| Some((table.to_u32(), places::claimant(table)?)))
        .collect();
    if let Some(relid) = rel.filter(|_| tables.is_empty()) {
        label_provider::check_relation(relid)?;
        guard::present_policy(relid)?;
    }
    state::reset_counters(background::my_database().to_u32(), &tables);
    Ok(())
}

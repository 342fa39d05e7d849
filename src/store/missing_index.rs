//! Indexes for deletion that a table lacks (C11), and the names of those built in the background
//! (C21).

use super::Clock;
use super::expiry_index;
use crate::citus;
use crate::pg::catalog::{self, quote_identifier, timescale};
use crate::pg::exec::relation;
use crate::pg::session::locks;
use crate::policy::{IndexMethod, Policy};
use crate::settings;
use pgrx::pg_sys;

/// What follows the table's name in the name of an index built in the background. It tells it from a user's.
const BUILT: &str = "ttl_ext_idx";

/// The name under which an index of the table is built in the background: a free one, chosen as CREATE INDEX
/// does, so that two databases with the same tables have the same names.
pub(crate) fn name_to_build(relid: pg_sys::Oid) -> String {
    catalog::free_relation_name(relid, BUILT)
}

/// Whether the table's policy wants indexes for deletion: with `auto`, where reading the table would take too long
/// (docs/decisions/0094-no-index-where-none-is-needed.md).
pub(crate) fn are_wanted(relid: pg_sys::Oid, policy: &Policy) -> bool {
    match policy.index {
        IndexMethod::Auto => {
            // A shell and a hypertable have no rows of their own.
            citus::is_shell(relid)
                || timescale::is_hypertable(relid)
                || blocks(relid) >= settings::auto_index_min_blocks()
        }
        IndexMethod::Btree => true,
        IndexMethod::None => false,
    }
}

/// The tables that an index of the table is of: itself or its partitions, but those of other owners, from which nothing is deleted.
pub(crate) fn leaves(relid: pg_sys::Oid) -> impl Iterator<Item = pg_sys::Oid> {
    all_leaves(relid).filter(move |&table| catalog::cascade::may_act_below(relid, table))
}

fn all_leaves(relid: pg_sys::Oid) -> impl Iterator<Item = pg_sys::Oid> {
    let tree = catalog::all_inheritors(relid).into_iter();
    tree.filter(move |&table| {
        catalog::class(table)
            .is_some_and(|class| class.has_rows() && (table == relid || class.is_partition))
    })
}

/// Whether an index of a partitioned table joins those of its partitions, and locks none of another owner while it builds one there.
pub(crate) fn may_join(relid: pg_sys::Oid) -> bool {
    catalog::is_partitioned(relid) && leaves(relid).count() == all_leaves(relid).count()
}

/// How many blocks they have together; those that another session has locked do not count. What is no heap may have no
/// order of blocks to read it by. No lock is kept: the caller may go on to a stronger one.
fn blocks(relid: pg_sys::Oid) -> u64 {
    let share = pg_sys::AccessShareLock;
    let free = leaves(relid).filter(|&table| locks::try_relation(table, share));
    let blocks = free.map(|table| {
        let open = relation::OpenRelation::locked(table);
        let blocks = match open.is_heap() {
            true => open.blocks(),
            false => u32::MAX,
        };
        drop(open);
        locks::release(table, share);
        u64::from(blocks)
    });
    blocks.sum()
}

/// What the table needs an index on for deletion, as in CREATE INDEX, if it has none. Locks nothing.
pub(crate) fn missing(relid: pg_sys::Oid, policy: &Policy, clock: Clock) -> Option<String> {
    if !expiry_index::find(relid, &clock.ts, clock.ttl.as_ref()).is_empty() {
        return None;
    }
    let ts = quote_identifier(policy.ts_column.as_deref().unwrap_or_default());
    Some(match (&policy.ttl_column, clock.ttl) {
        (Some(ttl), Some(_)) => format!("(ttl.expiry_key({ts}, {}))", quote_identifier(ttl)),
        _ => format!("({ts})"),
    })
}

/// Whether the index has a name that [`name_to_build`] gives.
pub(crate) fn is_built_name(name: &str) -> bool {
    let chosen = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
    chosen
        .strip_suffix(BUILT)
        .is_some_and(|table| table.ends_with('_'))
}

/// What a build has left of indexes that were not completed: by name and definition.
pub(crate) fn left_over(relid: pg_sys::Oid, clock: Clock) -> Vec<pg_sys::Oid> {
    let invalid = expiry_index::find_invalid(relid, &clock.ts, clock.ttl.as_ref()).into_iter();
    let is_built = |&index: &pg_sys::Oid| is_built_name(&catalog::relation_name(index));
    invalid.filter(is_built).collect()
}

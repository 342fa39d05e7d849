//! Citus, where it is installed: which relations are its tables and their shards, and what it is
//! doing in this session. By its catalogs and the names of its functions, without its symbols. Without Citus
//! each of the functions that other rooms call ends after one comparison (`docs/decisions/0063-citus.md`).
//!
//! | file | what |
//! |---|---|
//! | `catalogs` | whether it is there; its tables, its shards |
//! | `shard_name` | the names of shards, pure |
//! | `session` | whether Citus itself speaks: its connections, its functions that copy or convert |
//! | `distributed_transaction` | when the distributed transaction began, and its sessions on the nodes |
//! | `nodes` | the same query on each node |
//! | `placements` | the same statement on each copy of each shard |
//!
//! A table of Citus has its rows in shards, on this node and others; on each node a *shell*, a table
//! without rows, stands for it. The shell carries the label. To the look-up of a policy it is the
//! parent of its shards on this node, so that "the topmost label wins"
//! (`docs/decisions/0008-topmost-policy-wins.md`), and invalidation of children, hold for them, too.

mod catalogs;
mod distributed_transaction;
mod nodes;
pub(crate) mod placements;
mod session;
mod shard_name;
#[cfg(test)]
mod shard_name_test;

pub(crate) use catalogs::{
    CitusRole, has_shard_name, is_coordinator, is_known_to_be_absent, is_present, is_replicated,
    is_shell, is_successor, is_unfinished_copy, may_become_shard, part, shell_of, with_shards,
};
pub(crate) use distributed_transaction::{
    begun_at, check_only_session, one_at_a_time, use_one_session,
};
pub(crate) use nodes::{ask, is_asked};
pub(crate) use placements::call;
pub(crate) use session::{Doing, conversion, doing, enter, is_doing, is_of_citus, leave};

use crate::pg::catalog::inheritance;

/// Seconds: rows of a reference table stay on disk for so long after they have expired, and a
/// distributed transaction that is older writes to none (`docs/decisions/0063-citus.md`). So a
/// statement finds the same rows in each copy, whatever the nodes' clocks say.
pub(crate) const REFERENCE_MARGIN: i32 = 900;

/// Seconds: rows of partitions that may be dropped as a whole stay on disk for so long in their
/// shards, as it is the node with the partitions' metadata that drops them.
pub(crate) const PARTITIONS_FIRST: i32 = 300;

/// Registers for invalidations, and with the walks along inheritance; once, at load.
pub(crate) fn init() {
    catalogs::init();
    inheritance::extend(catalogs::shell_of);
}

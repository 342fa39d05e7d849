//! Citus, where it is installed: which relations are its tables and their shards, and what it is
//! doing in this session. By its catalogs and the names of its functions, without its symbols. Other rooms ask
//! [`here`], and nothing else; without Citus that is one comparison (`docs/decisions/0063-citus.md`).
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
pub(crate) mod nodes;
pub(crate) mod placements;
mod session;
mod shard_name;
#[cfg(test)]
mod shard_name_test;

pub(crate) use catalogs::{CitusRole, is_known_to_be_absent};
pub(crate) use session::{Conversion, Doing};

use crate::error::Result;
use crate::pg::catalog::{self, inheritance};
use crate::pg::session::scoped::Scope;
use pgrx::pg_sys::Oid;

/// What other rooms ask of Citus. The answers given here are those of a database without it.
pub(crate) trait Cluster {
    /// Whether Citus is in this database.
    fn is_present(&self) -> bool {
        false
    }

    /// Whether this is the node that coordinates the cluster: DDL of tables of Citus is for that alone.
    fn is_coordinator(&self) -> bool {
        false
    }

    /// What the relation is to Citus; `None` if it is nothing to it.
    fn part(&self, _relid: Oid) -> Option<CitusRole> {
        None
    }

    /// Whether the relation is a shell.
    fn is_shell(&self, _relid: Oid) -> bool {
        false
    }

    /// The shell of which the relation is a shard.
    fn shell_of(&self, _relid: Oid) -> Option<Oid> {
        None
    }

    /// Whether the relation is the shell of a reference table, of which each node has a copy, or of one whose shards
    /// Citus replicates by statements.
    fn is_replicated(&self, _relid: Oid) -> bool {
        false
    }

    /// These relations, all that inherit from them, their shards on this node, and what inherits from those; each once.
    fn with_shards(&self, relids: &[Oid]) -> Vec<Oid> {
        catalog::all_inheritors_of(relids.iter().copied())
    }

    /// Whether the relation may yet become a shard, without an invalidation of its own.
    fn may_become_shard(&self, _relid: Oid) -> bool {
        false
    }

    /// Whether the relation has the name of a shard: what Citus makes has, before its catalogs say so, or where this
    /// session does not see that yet.
    fn has_shard_name(&self, _relid: Oid) -> bool {
        false
    }

    /// Whether Citus is about to make a copy of a shard of the relation, which is not yet one of those that it reads.
    fn is_unfinished_copy(&self, _relid: Oid) -> bool {
        false
    }

    /// Whether Citus has made the relation to take the place of `_of`, of another kind.
    fn is_successor(&self, _relid: Oid, _of: Oid) -> bool {
        false
    }

    /// Whether the session is a connection of Citus between nodes.
    fn is_of_citus(&self) -> bool {
        false
    }

    /// Whether a function of Citus is running that does this.
    fn is_doing(&self, _what: Doing) -> bool {
        false
    }

    /// What the function does, if it is one of Citus's that matter.
    fn doing(&self, _function: Oid) -> Option<Doing> {
        None
    }

    /// Called before such a function is called, and [`Self::leave`] after it. Returns what begins with it; `None` within
    /// another.
    fn enter(&self, _function: Oid) -> Option<(Doing, Scope)> {
        None
    }

    /// Ends what [`Self::enter`] began. Calls no function of PostgreSQL.
    fn leave(&self, scope: Scope) {
        session::leave(scope);
    }

    /// What is special about a function that converts tables.
    fn conversion(&self, _function: Oid) -> Conversion {
        Conversion::default()
    }

    /// When the distributed transaction began, by the clock of the node that coordinates it; `None` outside one.
    fn begun_at(&self) -> Option<i64> {
        None
    }

    /// Has all that follows in the transaction reach each node by one session, before the table's policy is changed: a
    /// session does not see what another has changed before that is committed. 25001 if a node has several sessions of
    /// the transaction already.
    fn use_one_session(&self, _relid: Oid) -> Result<()> {
        Ok(())
    }

    /// The same on this node alone, where the label of the table arrives.
    fn check_only_session(&self, _relid: Oid) -> Result<()> {
        Ok(())
    }

    /// Has statements on shards follow one another, until the end of the transaction.
    fn one_at_a_time(&self) -> Result<()> {
        Ok(())
    }

    /// Whether the session is one that asks for another node: it asks no further.
    fn is_asked(&self) -> bool {
        false
    }

    /// Asks all nodes.
    fn ask(&self, query: &str) -> Result<Vec<nodes::NodeAnswer>> {
        nodes::ask_alone(query)
    }

    /// Calls `_function` for each copy of each shard of the shell, with these other arguments (SQL).
    fn call(
        &self,
        _shell: Oid,
        _function: &str,
        _others: &[String],
    ) -> Result<Vec<placements::PlacementAnswer>> {
        Ok(vec![])
    }
}

/// A database without Citus.
struct Absent;

impl Cluster for Absent {}

/// One with it.
struct WithCitus;

impl Cluster for WithCitus {
    fn is_present(&self) -> bool {
        catalogs::is_present()
    }

    fn is_coordinator(&self) -> bool {
        catalogs::is_coordinator()
    }

    fn part(&self, relid: Oid) -> Option<CitusRole> {
        catalogs::part(relid)
    }

    fn is_shell(&self, relid: Oid) -> bool {
        catalogs::is_shell(relid)
    }

    fn shell_of(&self, relid: Oid) -> Option<Oid> {
        catalogs::shell_of(relid)
    }

    fn is_replicated(&self, relid: Oid) -> bool {
        catalogs::is_replicated(relid)
    }

    fn with_shards(&self, relids: &[Oid]) -> Vec<Oid> {
        catalogs::with_shards(relids)
    }

    fn may_become_shard(&self, relid: Oid) -> bool {
        catalogs::may_become_shard(relid)
    }

    fn has_shard_name(&self, relid: Oid) -> bool {
        catalogs::has_shard_name(relid)
    }

    fn is_unfinished_copy(&self, relid: Oid) -> bool {
        catalogs::is_unfinished_copy(relid)
    }

    fn is_successor(&self, relid: Oid, of: Oid) -> bool {
        catalogs::is_successor(relid, of)
    }

    fn is_of_citus(&self) -> bool {
        session::is_of_citus()
    }

    fn is_doing(&self, what: Doing) -> bool {
        session::is_doing(what)
    }

    fn doing(&self, function: Oid) -> Option<Doing> {
        session::doing(function)
    }

    fn enter(&self, function: Oid) -> Option<(Doing, Scope)> {
        session::enter(function)
    }

    fn conversion(&self, function: Oid) -> Conversion {
        session::conversion(function)
    }

    fn begun_at(&self) -> Option<i64> {
        distributed_transaction::begun_at()
    }

    fn use_one_session(&self, relid: Oid) -> Result<()> {
        distributed_transaction::use_one_session(relid)
    }

    fn check_only_session(&self, relid: Oid) -> Result<()> {
        distributed_transaction::check_only_session(relid)
    }

    fn one_at_a_time(&self) -> Result<()> {
        distributed_transaction::one_at_a_time()
    }

    fn is_asked(&self) -> bool {
        nodes::is_asked()
    }

    fn ask(&self, query: &str) -> Result<Vec<nodes::NodeAnswer>> {
        nodes::ask(query)
    }

    fn call(
        &self,
        shell: Oid,
        function: &str,
        others: &[String],
    ) -> Result<Vec<placements::PlacementAnswer>> {
        placements::call(shell, function, others)
    }
}

/// The answers for this database: where Citus is not installed, those of the trait.
#[inline]
pub(crate) fn here() -> &'static dyn Cluster {
    if catalogs::is_present() {
        &WithCitus
    } else {
        &Absent
    }
}

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

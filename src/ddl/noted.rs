//! What `sync_trigger` and those that it calls note of a statement, until it has ended.

use super::rules_in_force::RulesBefore;
use crate::pg::session::scoped::Scoped;
use pgrx::pg_sys::Oid;
use std::collections::BTreeMap;

/// What the outermost tracked statement changes, with those inside it.
#[derive(Default)]
pub(super) struct Noted {
    /// The tables to which it may add a key, or a trigger.
    pub(super) extended: Vec<Oid>,
    /// The tables that may no longer need the trigger.
    pub(super) reduced: Vec<Oid>,
    /// Tables, by OID, and the names of their indexes that it has dropped.
    pub(super) indexes: BTreeMap<u32, Vec<String>>,
    /// The TTL indexes in force before, of families from which a dropped table has inherited.
    pub(super) rules: Vec<RulesBefore>,
    /// The tables above those that it has dropped.
    pub(super) above: Vec<Oid>,
    pub(super) altered: Vec<Altered>,
    /// The columns whose DEFAULT uses a function of the extension, if it may drop that.
    pub(super) defaults: Vec<(Oid, i16)>,
}

/// A relation that it has altered, and its owner before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Altered {
    pub(super) relid: Oid,
    pub(super) former: Oid,
}

/// Empty unless such a statement runs.
pub(super) static NOTED: Scoped<Noted> = Scoped::new();

//! Which tables and partitions of a database are to be swept, as its scheduler reads it from the
//! labels into shared memory.

use crate::citus;
use crate::deletion::worker_transaction;
use crate::error::Error;
use crate::pg::abi::variable::{ByOid, Variable};
use crate::pg::catalog::{self, invalidation, roles};
use crate::pg::server::{activity, background};
use crate::policy::{Policy, micros};
use crate::store::{self, Clock, TablePolicy, cache, extension};
use crate::worker::builder;
use crate::worker::queue::quota::Claimant;
use crate::worker::shared::state::{self, Entering, TableKey, TableState};
use crate::worker::shared::{self, blocked, builds, places};
use pgrx::pg_sys;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::Ordering;

/// After this number of tables a worker forgets what its session has cached of them: some 40 kB each, which
/// PostgreSQL keeps for the life of a session.
pub(in crate::worker) const CACHED_TABLES: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) enum Reading {
    All,
    /// All labels, but other catalogs only for relations that were invalidated or whose label has changed: a session has
    /// announced a change.
    Changed,
}

/// Reads the policies and updates the shared states: new tables and those with another policy
/// are due now. `None` if the extension is absent, or no table has a policy; else whether nothing has to be tried again.
pub(in crate::worker) fn load(reading: Reading) -> Result<Option<bool>, Error> {
    let database = background::my_database().to_u32();
    let found = worker_transaction::run(|| {
        // A session announces a change as soon as others can see it, before it sends the
        // invalidations of their caches.
        forget_caches();
        let is_present = extension::is_present();
        if reading == Reading::All || !is_present || citus::is_present() {
            clear();
        }
        if !is_present {
            return Ok(None);
        }
        let mut targets = FoundTargets::new();
        let mut restored = Vec::new();
        let labels = store::labels();
        let unfinished = builder::unfinished(&labels);
        let mut bound = HashMap::new();
        for (labelled_table, policy) in &labels {
            // C9: TTL is off.
            if !policy.is_on() {
                continue;
            }
            if policy.restored {
                // Unless an ancestor's is in force.
                if cache::labelled_table(*labelled_table) == Some(*labelled_table) {
                    restored.push(*labelled_table);
                }
            } else {
                let hash = hash(&(policy.to_label(), policy.local));
                bound.insert(*labelled_table, (policy, hash));
            }
        }
        // All trees in one walk: they may share branches, and tables within one may have labels
        // of their own that are not in force.
        let relids = citus::with_shards(&bound.keys().copied().collect::<Vec<_>>());
        let mut read = 0;
        for relid in relids {
            let of_now = |found: &Found| {
                let label = bound.get(&found.labelled_table).map(|&(_, label)| label);
                label == Some(found.label)
            };
            let target = match get(relid).filter(of_now) {
                Some(known) => known.target.map(with_rights),
                None => {
                    read += 1;
                    if read % CACHED_TABLES == 0 {
                        forget_caches();
                    }
                    collect(relid, &bound)
                }
            };
            targets.extend(target.map(|target| (relid.to_u32(), target)));
        }
        let labelled_tables: HashSet<u32> = labels
            .iter()
            .map(|(labelled_table, _)| labelled_table.to_u32())
            .collect();
        Ok((!labels.is_empty()).then_some((targets, restored, labelled_tables, unfinished)))
    })?;
    // A session may have announced a change that this reading has not seen.
    let late = shared::database(database).is_some_and(|slot| slot.changed.load(Ordering::Acquire));
    let Some((targets, restored, labelled_tables, unfinished)) = found else {
        if late {
            return Ok(Some(false));
        }
        state::remove_tables(|state| state.key.database == database);
        return Ok(None);
    };
    if !late {
        state::remove_targets(
            database,
            |relid| targets.contains_key(&relid),
            |relid| labelled_tables.contains(&relid),
        );
    }
    let now = background::monotonic();
    let lacking = without_room(database, &targets);
    let full = u32::try_from(lacking.len()).unwrap_or(u32::MAX);
    for (&relid, (target, fingerprint)) in &targets {
        let key = TableKey { database, relid };
        if lacking.contains(&relid) {
            continue;
        }
        let changed = state::with_table(key, |state| {
            state.labelled_table = target.labelled_table.to_u32();
            state.owner = target.owner.to_u32();
            state.shortest = target.shortest;
            state.drops = target.drop_partitions;
            state.unlimited = target.unlimited;
            let changed = state.fingerprint != *fingerprint;
            if changed {
                state.fingerprint = *fingerprint;
                // A turn that goes on by the old policy does not keep its findings.
                state.progress = state::Progress::default();
                state.not_whole_before = 0;
                state.emptiness.interrupt();
                // Nor do its findings about rows hold under the new one.
                state.is_seen = false;
                state.counters.backlog = 0;
                state.counters.oldest_expiry = 0;
                state.failing = false;
                state.since = now;
                state.schedule.now();
            }
            changed
        });
        if changed == Some(true) {
            blocked::forget_all(key);
        }
    }
    if let Some(slot) = shared::database(database) {
        slot.without_room.store(full, Ordering::Relaxed);
    }
    warn(full, &restored);
    builds::want(database, &unfinished);
    Ok(Some(!late && full == 0 && unfinished.is_empty()))
}

/// What policies are read from, and who may be who.
const CATALOGS: [pg_sys::Oid; 14] = [
    pg_sys::SecLabelRelationId,
    pg_sys::RelationRelationId,
    pg_sys::AttributeRelationId,
    pg_sys::AttrDefaultRelationId,
    pg_sys::InheritsRelationId,
    pg_sys::PartitionedRelationId,
    pg_sys::IndexRelationId,
    pg_sys::ConstraintRelationId,
    pg_sys::TypeRelationId,
    pg_sys::ProcedureRelationId,
    pg_sys::NamespaceRelationId,
    pg_sys::ExtensionRelationId,
    pg_sys::AuthIdRelationId,
    pg_sys::AuthMemRelationId,
];

/// How often they have been written to, by the statistics; `None` if that is not known, or is not all (with Citus).
pub(in crate::worker) fn catalog_writes() -> Result<Option<i64>, Error> {
    worker_transaction::run(|| {
        let is_all = !citus::is_present();
        Ok(is_all.then(|| activity::rows_changed(&CATALOGS)).flatten())
    })
}

/// Gives each target a state; returns those for which there is no room.
fn without_room(database: u32, targets: &FoundTargets) -> HashSet<u32> {
    let mut entering = Entering::begin();
    let mut lacking = HashSet::new();
    for (&relid, (target, fingerprint)) in targets {
        let key = TableKey { database, relid };
        let claimant = Claimant {
            owner: target.owner.to_u32(),
            unlimited: target.unlimited,
        };
        let new = TableState {
            fingerprint: *fingerprint,
            ..TableState::new(key, target.labelled_table.to_u32(), claimant)
        };
        if entering.ensure(&new).is_err() {
            lacking.insert(relid);
        }
    }
    lacking
}

/// Targets with the fingerprints of their policies.
type FoundTargets = HashMap<u32, Fingerprinted>;

/// What the relation is: a target if it has rows of its own and one of these policies is in force.
fn collect(
    relid: pg_sys::Oid,
    bound: &HashMap<pg_sys::Oid, (&Policy, u64)>,
) -> Option<Fingerprinted> {
    let labelled_table = cache::labelled_table(relid)?;
    let &(policy, label) = bound.get(&labelled_table)?;
    let target = target(relid, policy, label);
    let found = Found {
        labelled_table,
        label,
        target,
    };
    put(relid, found);
    target
}

fn target(relid: pg_sys::Oid, policy: &Policy, label: u64) -> Option<Fingerprinted> {
    let class = catalog::class(relid)?;
    // Another session's temporary table cannot be read.
    if !class.has_rows() || class.persistence == pg_sys::RELPERSISTENCE_TEMP {
        return None;
    }
    let in_force = cache::policy(relid).filter(|policy| policy.expires())?;
    if !catalog::cascade::may_act_below(in_force.labelled_table, relid) {
        return None;
    }
    let target = Target {
        labelled_table: in_force.labelled_table,
        owner: class.owner,
        unlimited: roles::is_superuser(class.owner),
        drop_partitions: policy.drop_partitions && class.is_partition && !in_force.is_shard(),
        shortest: shortest(&in_force),
    };
    // A shell has no rows. The coordinator drops it, with its shards, if it is a whole partition.
    if in_force.is_shell() && !(target.drop_partitions && citus::is_coordinator()) {
        return None;
    }
    if in_force.is_unfinished_copy(relid) {
        return None;
    }
    Some((target, fingerprint(label, &in_force)))
}

/// The rights of a role change without an invalidation of its tables.
fn with_rights((target, fingerprint): Fingerprinted) -> Fingerprinted {
    let unlimited = roles::is_superuser(target.owner);
    (
        Target {
            unlimited,
            ..target
        },
        fingerprint,
    )
}

fn shortest(policy: &TablePolicy) -> i64 {
    let seconds = if !policy.rules.is_empty() {
        0
    } else if policy.clock.is_some_and(|clock| clock.ttl.is_some()) {
        1
    } else {
        policy.expiring_default().unwrap_or(1)
    };
    micros(seconds) + micros(policy.keep_expired)
}

fn hash(of: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// Changes with everything that a sweep depends on.
fn fingerprint(label: u64, in_force: &TablePolicy) -> u64 {
    let mut hasher = DefaultHasher::new();
    label.hash(&mut hasher);
    // Sessions announce what they write under it.
    in_force.labelled_table.hash(&mut hasher);
    let columns = |clock: Clock| (clock.ts.attno, clock.ttl.map(|column| column.attno));
    in_force.clock.map(columns).hash(&mut hasher);
    in_force.rules.hash(&mut hasher);
    // 0 stands for none.
    hasher.finish() | 1
}

fn warn(full: u32, restored: &[pg_sys::Oid]) {
    if full > 0 {
        crate::worker::shared::log::once(
            "full",
            &format!(
                "no room in shared memory for {full} tables with a time to live: their expired rows stay on disk"
            ),
            "Raise \"ttl.max_tables\" and restart the server.",
        );
    }
    for &labelled_table in restored {
        let key = TableKey::here(labelled_table);
        let claimant = worker_transaction::run(|| Ok(places::claimant(labelled_table)));
        let is_new = |claimant| state::warn_restored(key, claimant);
        if !claimant.ok().flatten().is_some_and(is_new) {
            continue;
        }
        let name = worker_transaction::run(|| Ok(catalog::qualified_name(labelled_table)))
            .unwrap_or_default();
        crate::worker::shared::log::warning(
            &format!(
                "expired rows of table {name} are not deleted, because the table was restored from a dump or labelled by hand"
            ),
            &format!(
                "Look at it, then start deletion with SELECT ttl.resume({}).",
                catalog::quote_literal(&name)
            ),
        );
    }
}

/// A table or partition with rows of its own.
#[derive(Debug, Clone, Copy)]
struct Target {
    labelled_table: pg_sys::Oid,
    owner: pg_sys::Oid,
    /// The owner is a superuser.
    unlimited: bool,
    drop_partitions: bool,
    /// How soon a row that is written now can be deleted, in microseconds.
    shortest: i64,
}

/// A target with the fingerprint of its policy.
type Fingerprinted = (Target, u64);

/// What one relation is.
#[derive(Debug, Clone, Copy)]
struct Found {
    /// The relation whose label is in force, and the hash of that label.
    labelled_table: pg_sys::Oid,
    label: u64,
    /// `None` if it is no target.
    target: Option<Fingerprinted>,
}

/// What the scheduler found of each relation when it last read the relation's policy, until PostgreSQL
/// invalidates it: where some of many policies change, only those are read anew.
static FOUND: ByOid<Found> = ByOid::empty();
/// The session drops its own caches, and nothing has changed because of that.
static IS_OWN: Variable<Cell<bool>> = Variable::new(Cell::new(false));

/// Registers for invalidations; once in a process.
pub(in crate::worker) fn init() {
    invalidation::listen(on_invalidation);
}

fn get(relid: pg_sys::Oid) -> Option<Found> {
    FOUND.with_borrow(|found| found.get(&relid).copied())
}

fn put(relid: pg_sys::Oid, what: Found) {
    FOUND.with_borrow_mut(|found| found.insert(relid, what));
}

fn clear() {
    FOUND.with_borrow_mut(|found| found.clear());
}

/// Drops all caches of this session but this one: what is read from now on is read from the catalogs.
/// It takes in no message of another session, so that this cache loses none.
fn forget_caches() {
    IS_OWN.set(true);
    catalog::forget_caches();
    IS_OWN.set(false);
}

/// May be called anywhere: does not allocate, raise or look anything up.
fn on_invalidation(relid: pg_sys::Oid) {
    if relid != pg_sys::InvalidOid || !IS_OWN.get() {
        invalidation::forget(&FOUND, relid);
    }
}

//! M11: drops a partition that has held rows, all of which are expired, or that has stood empty for
//! `ttl.empty_partition_age` (docs/decisions/0070-what-waits.md).

use crate::clock::held;
use crate::deletion::partition_bounds::{self, DateColumn};
use crate::deletion::{partitions, worker_transaction};
use crate::error::Error;
use crate::pg::catalog;
use crate::pg::server::background;
use crate::pg::server::timeout::TimedTurn;
use crate::pg::session::gate::GateVisit;
use crate::pg::session::{self, locks, owner_session};
use crate::policy::{lagging, latest_instant};
use crate::settings;
use crate::store::paused_tables;
use crate::store::{TablePolicy, cache, policy_lock};
use crate::worker::shared::log;
use crate::worker::shared::state::{self, TableKey};
use pgrx::{PgSqlErrorCode, pg_sys};
use std::rc::Rc;
use std::time::Duration;

/// The outcome of the attempt to drop a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::worker) enum Whole {
    /// It is gone; the caller forgets the table.
    Dropped,
    /// Its time has not come, or it is empty and rows may still come.
    NotYet,
    /// Its time has passed, but it holds live rows, or others than its parent's owner are
    /// involved.
    Kept,
    /// The check took longer than allowed; the next turn has more time.
    NotKnown,
}

/// Sessions that come through the parent wait while the locked partition is checked and dropped:
/// no longer than this.
const LOCKED: Duration = Duration::from_secs(1);
/// The same where all nodes of Citus lock it and drop its shards.
const LOCKED_EVERYWHERE: Duration = Duration::from_secs(10);
/// While waiting for that lock it makes others wait, too: milliseconds.
const LOCK_TIMEOUT: i32 = 100;

/// Drops the partition if its time has passed, and all its rows are expired.
///
/// It is checked twice: without a lock that blocks other sessions, then under the lock.
pub(in crate::worker) fn drop_if_past(key: TableKey) -> Result<Whole, Error> {
    let leaf = pg_sys::Oid::from(key.relid);
    let found = match worker_transaction::run(|| {
        Ok(match candidate(key) {
            Ok(ready) => {
                locks::relation_or_busy(leaf, pg_sys::AccessShareLock)?;
                let visit = owner_session::visit(leaf)?;
                match partitions::renamable(leaf) {
                    Some(_) => Err(Whole::Kept),
                    None => ready.check_rows(&visit, key).map(|()| ready),
                }
            }
            not_ready => not_ready,
        })
    }) {
        Err(_)
            if TimedTurn::has_timed_out()
                && TimedTurn::is_limited(settings::statement_timeout()) =>
        {
            return Ok(Whole::NotKnown);
        }
        found => found?,
    };
    let first = match found {
        Ok(ready) => ready,
        Err(whole) => return Ok(whole),
    };
    let labelled_table = first.policy.labelled_table;
    let is_shell = first.policy.is_shell();
    let locked = if is_shell { LOCKED_EVERYWHERE } else { LOCKED };
    let dropped = worker_transaction::run_within(locked, || {
        session::limit_lock_waits(LOCK_TIMEOUT.min(settings::lock_timeout_ms()));
        if !policy_lock::try_share_extension() || !policy_lock::try_share_policy(labelled_table) {
            return Err(Error::new(
                PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE,
                "the time to live is being changed",
            ));
        }
        if partitions::lock_for_drop(leaf).is_none() {
            return Ok(None);
        }
        let ready = candidate(key).ok().filter(|ready| {
            ready.policy.labelled_table == labelled_table && ready.owner == first.owner
        });
        let Some(ready) = ready.filter(|_| partitions::renamable(leaf).is_none()) else {
            return Ok(None);
        };
        let name = catalog::qualified_name(leaf);
        let visit = owner_session::visit(leaf)?;
        if ready.policy.is_shell() {
            partitions::lock_everywhere(leaf)?;
        }
        if ready.check_rows(&visit, key).is_err() {
            return Ok(None);
        }
        partitions::drop_whole(&visit, leaf)?;
        Ok(Some(name))
    });
    let Some(name) = dropped? else {
        return Ok(Whole::Kept);
    };
    state::forget_dropped(key, labelled_table.to_u32());
    log::debug(&format!(
        "ttl_ext dropped partition {name}, in which no row was live"
    ));
    Ok(Whole::Dropped)
}

/// A partition whose time has passed.
struct ReadyPartition {
    policy: Rc<TablePolicy>,
    /// Who drops it.
    owner: pg_sys::Oid,
    /// Single rows may still be live.
    must_look: bool,
}

impl ReadyPartition {
    /// Whether there were rows, and all have expired, or the partition has stood empty for long.
    fn check_rows(&self, visit: &GateVisit, key: TableKey) -> Result<(), Whole> {
        let leaf = key.relid.into();
        let is_live = self.must_look && partitions::has_live_row(visit, leaf, &self.policy);
        if is_live || partitions::has_row(visit, leaf, &self.policy) {
            state::with_table(key, |state| state.emptiness.interrupt());
            return if is_live { Err(Whole::Kept) } else { Ok(()) };
        }
        let (file, now) = (catalog::file(leaf), background::monotonic());
        let age = settings::empty_partition_age();
        match state::with_table(key, |state| state.emptiness.may_go(file, now, age)) {
            Some(true) => Ok(()),
            _ => Err(Whole::NotYet),
        }
    }
}

/// The partition, if its time has passed, by the default or a TTL index; from the catalogs.
fn candidate(key: TableKey) -> Result<ReadyPartition, Whole> {
    let leaf = pg_sys::Oid::from(key.relid);
    // No parent has asked for it if the partition has a label of its own.
    let policy = cache::policy(leaf).filter(|policy| policy.labelled_table != leaf);
    let policy = policy.ok_or(Whole::NotYet)?;
    let label = &policy.label;
    // C26: rows that are archived are taken row by row.
    if !label.drop_partitions || label.restored || label.archive_to.is_some() {
        return Err(Whole::NotYet);
    }
    let now = background::now();
    let waits = policy.waits_until(now).is_some() || held::is_held();
    if waits || paused_tables::at(label.rest(), now).is_some() {
        return Err(Whole::NotYet);
    }
    let now = lagging(now, policy.keep_expired);
    let must_look = past_by_rule(leaf, &policy, now).or_else(|| past_by_clock(leaf, &policy, now));
    let Some(must_look) = must_look else {
        state::with_table(key, |state| state.emptiness.interrupt());
        return Err(Whole::NotYet);
    };
    Ok(ReadyPartition {
        owner: partitions::sole_owner(leaf).ok_or(Whole::Kept)?,
        policy,
        must_look,
    })
}

/// Whether single rows may still be live, if the partition's bounds have passed.
fn past_by_clock(leaf: pg_sys::Oid, policy: &TablePolicy, now: i64) -> Option<bool> {
    let (clock, label) = (policy.clock?, &policy.label);
    let range = partition_bounds::range(leaf, &DateColumn::of_clock(label.ts_column.as_deref()?))?;
    partition_bounds::is_past(range.newest, label.default_ttl, now).then_some(clock.ttl.is_some())
}

/// The same by the column of a TTL index that holds all rows (M11).
fn past_by_rule(leaf: pg_sys::Oid, policy: &TablePolicy, now: i64) -> Option<bool> {
    policy.rules.iter().find_map(|rule| {
        let range = partition_bounds::range(leaf, &DateColumn::of_rule(rule, leaf)?)?;
        let newest = match &rule.time_zone {
            Some(zone) => latest_instant(range.newest, zone.clock()),
            None => range.newest,
        };
        partition_bounds::is_past_by_index(newest, rule.seconds, now)
            .then_some(range.reaches_minus_infinity)
    })
}

//! M11: drops a partition that has held rows, all of which are expired, or that has stood empty for
//! `ttl.empty_partition_age` (docs/decisions/0070-what-waits.md).

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
use crate::store::{TablePolicy, cache, governing_label, policy_lock};
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
    let (labelled_table, owner, is_shell) = match worker_transaction::run(|| {
        let found = candidate(leaf)?;
        if matches!(found, PartitionCandidate::NotPast) {
            state::with_table(key, |state| state.emptiness.interrupt());
        }
        let PartitionCandidate::Ready(ready) = found else {
            return Ok(found);
        };
        let visit = ready.visit(leaf)?;
        Ok(match ready.rows(&visit, key) {
            Rows::Live => PartitionCandidate::Kept,
            Rows::MayCome => PartitionCandidate::NotYet,
            Rows::Expired => PartitionCandidate::Ready(ready),
        })
    }) {
        Ok(PartitionCandidate::Ready(ready)) => (
            ready.policy.labelled_table,
            ready.owner,
            ready.policy.is_shell(),
        ),
        Ok(PartitionCandidate::NotYet | PartitionCandidate::NotPast) => return Ok(Whole::NotYet),
        Ok(PartitionCandidate::Kept) => return Ok(Whole::Kept),
        Err(_)
            if TimedTurn::has_timed_out()
                && TimedTurn::is_limited(settings::statement_timeout()) =>
        {
            return Ok(Whole::NotKnown);
        }
        Err(failure) => return Err(failure),
    };
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
        let ready = match candidate(leaf)? {
            PartitionCandidate::Ready(ready)
                if ready.policy.labelled_table == labelled_table && ready.owner == owner =>
            {
                ready
            }
            _ => return Ok(None),
        };
        let name = catalog::qualified_name(leaf);
        let visit = owner_session::visit(leaf)?;
        if ready.policy.is_shell() {
            partitions::lock_everywhere(leaf)?;
        }
        if !matches!(ready.rows(&visit, key), Rows::Expired) {
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

/// Whether a partition may go.
enum PartitionCandidate {
    Ready(ReadyPartition),
    /// Its bound has not passed.
    NotPast,
    NotYet,
    Kept,
}

/// What there is in a partition whose time has passed.
enum Rows {
    Live,
    /// There were rows, and all have expired; or it has stood empty for long.
    Expired,
    /// It is empty.
    MayCome,
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
    fn visit(&self, leaf: pg_sys::Oid) -> Result<GateVisit, Error> {
        locks::relation_or_busy(leaf, pg_sys::AccessShareLock)?;
        owner_session::visit(leaf)
    }

    fn rows(&self, visit: &GateVisit, key: TableKey) -> Rows {
        let leaf = key.relid.into();
        let is_live = self.must_look && partitions::has_live_row(visit, leaf, &self.policy);
        if is_live || partitions::has_row(visit, leaf, &self.policy) {
            state::with_table(key, |state| state.emptiness.interrupt());
            return if is_live { Rows::Live } else { Rows::Expired };
        }
        let (file, now) = (catalog::file(leaf), background::monotonic());
        let age = settings::empty_partition_age();
        match state::with_table(key, |state| state.emptiness.may_go(file, now, age)) {
            Some(true) => Rows::Expired,
            _ => Rows::MayCome,
        }
    }
}

/// Whether the partition's time has passed, by the default or a TTL index; from the catalogs.
fn candidate(leaf: pg_sys::Oid) -> Result<PartitionCandidate, Error> {
    // No parent has asked for it if the partition has a label of its own.
    let policy = cache::policy(leaf).filter(|policy| policy.labelled_table != leaf);
    let (Some(policy), Some(label)) = (policy, governing_label(leaf)) else {
        return Ok(PartitionCandidate::NotYet);
    };
    if !label.policy.drop_partitions || label.policy.restored {
        return Ok(PartitionCandidate::NotYet);
    }
    // C26: they are taken row by row.
    if policy.archive.is_some() {
        return Ok(PartitionCandidate::NotYet);
    }
    let now = background::now();
    if policy.waits_until(now).is_some() || paused_tables::at(policy.rest, now).is_some() {
        return Ok(PartitionCandidate::NotYet);
    }
    let now = lagging(now, policy.keep_expired);
    let past = match past_by_rule(leaf, &policy, now)? {
        BoundsPast::No => past_by_clock(leaf, &policy, label.policy.ts_column.as_deref(), now)?,
        past => past,
    };
    let must_look = match past {
        BoundsPast::No => return Ok(PartitionCandidate::NotPast),
        BoundsPast::PerhapsNotAll => true,
        BoundsPast::All => false,
    };
    Ok(match partitions::sole_owner(leaf) {
        Some(owner) => PartitionCandidate::Ready(ReadyPartition {
            policy,
            owner,
            must_look,
        }),
        None => PartitionCandidate::Kept,
    })
}

/// What a partition's bounds say of its rows.
enum BoundsPast {
    No,
    /// Single rows may still be live.
    PerhapsNotAll,
    All,
}

fn past_by_clock(
    leaf: pg_sys::Oid,
    policy: &TablePolicy,
    ts_column: Option<&str>,
    now: i64,
) -> Result<BoundsPast, Error> {
    let (Some(clock), Some(name)) = (policy.clock, ts_column) else {
        return Ok(BoundsPast::No);
    };
    let range = partition_bounds::range(leaf, &DateColumn::of_clock(name))?;
    Ok(match range {
        Some(range) if partition_bounds::is_past(range.newest, policy.default_ttl, now) => {
            if clock.ttl.is_some() {
                BoundsPast::PerhapsNotAll
            } else {
                BoundsPast::All
            }
        }
        _ => BoundsPast::No,
    })
}

/// M11 by the column of a TTL index that holds all rows.
fn past_by_rule(leaf: pg_sys::Oid, policy: &TablePolicy, now: i64) -> Result<BoundsPast, Error> {
    for rule in &policy.rules {
        let Some(column) = DateColumn::of_rule(rule, leaf) else {
            continue;
        };
        let range = partition_bounds::range(leaf, &column)?;
        let newest = |local| match &rule.time_zone {
            Some(zone) => latest_instant(local, zone.clock()),
            None => local,
        };
        match range {
            Some(range)
                if partition_bounds::is_past_by_index(newest(range.newest), rule.seconds, now) =>
            {
                return Ok(if range.reaches_minus_infinity {
                    BoundsPast::PerhapsNotAll
                } else {
                    BoundsPast::All
                });
            }
            _ => {}
        }
    }
    Ok(BoundsPast::No)
}

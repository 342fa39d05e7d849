//! M11: a partition whose every row is expired goes as a whole.

use super::shared;
use super::state::{self, TableKey};
use super::{bounds, log, partitions};
use crate::pg::txn::{self, Failure};
use crate::pg::{background, catalog, locks, session};
use crate::settings;
use crate::store::{TablePolicy, cache, governing_label};
use pgrx::{PgSqlErrorCode, pg_sys};

/// Drops the partition if its time has passed and no row in it is live; whether
/// it did. The caller then forgets the table.
///
/// Looked at twice: without a lock that hinders anybody, then under the lock.
pub(super) fn drop_if_past(key: TableKey) -> Result<bool, Failure> {
    let leaf = pg_sys::Oid::from(key.relid);
    if txn::run(|| candidate(leaf))?.is_none() {
        return Ok(false);
    }
    // Who waits for this lock makes others wait: not for long.
    const LONGEST: i32 = 100;
    session::force(
        "lock_timeout",
        &LONGEST.min(settings::lock_timeout_ms()).to_string(),
    );
    let dropped = txn::run(|| {
        if partitions::lock_for_drop(leaf).is_none() {
            return Ok(None);
        }
        let Some(policy) = candidate(leaf)? else {
            return Ok(None);
        };
        if !locks::try_share_policy(policy.holder) || cache::policy(leaf) != Some(policy) {
            return Err(Failure::new(
                PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE,
                "the time to live is being changed",
            ));
        }
        let name = catalog::qualified_name(leaf);
        partitions::drop_whole(leaf)?;
        Ok(Some((policy.holder, name)))
    });
    session::force("lock_timeout", &settings::lock_timeout_ms().to_string());
    let Some((holder, name)) = dropped? else {
        return Ok(false);
    };
    let sum = TableKey {
        relid: holder.to_u32(),
        ..key
    };
    if state::ensure_table(sum, sum.relid, 0) {
        state::with_table(sum, |state| {
            if state.fingerprint == 0 {
                state.plan.never();
            }
            state.counters.partitions_dropped += 1;
        });
    }
    if let Some(slot) = shared::database(background::my_database().to_u32()) {
        slot.changed
            .store(true, std::sync::atomic::Ordering::Release);
    }
    log::debug(&format!(
        "ttl_ext dropped partition {name}, in which every row was expired"
    ));
    Ok(true)
}

/// The policy by which the partition may go: its time has passed, and no row is
/// kept alive by its override.
fn candidate(leaf: pg_sys::Oid) -> Result<Option<TablePolicy>, Failure> {
    // A partition with a label of its own has no parent that asked for it.
    let policy = cache::policy(leaf).filter(|policy| policy.holder != leaf);
    let (Some(policy), Some(label)) = (policy, governing_label(leaf)) else {
        return Ok(None);
    };
    if !label.policy.drop_partitions {
        return Ok(None);
    }
    let Some(newest) = bounds::upper_bound(leaf, &label.policy.ts_column)? else {
        return Ok(None);
    };
    if !bounds::is_past(newest, policy.default_ttl, background::now()) {
        return Ok(None);
    }
    if policy.ttl.is_some() && partitions::has_live_row(leaf, &label.policy)? {
        return Ok(None);
    }
    Ok(Some(policy))
}

//! M11: a partition whose every row is expired goes as a whole.

use super::bounds::{self, DateColumn};
use super::state::{self, TableKey};
use super::{log, partitions};
use crate::pg::dates::DateKind;
use crate::pg::txn::{self, Failure};
use crate::pg::{background, catalog, locks, session};
use crate::settings;
use crate::store::{Rule, TablePolicy, cache, governing_label};
use pgrx::{PgSqlErrorCode, pg_sys};
use std::rc::Rc;
use std::time::Duration;

/// What has become of the attempt to drop a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    /// It is gone; the caller forgets the table.
    Dropped,
    /// Its time has not come.
    NotYet,
    /// Its time has passed, but it holds live rows, or is not its parent's owner's.
    Kept,
}

/// Everybody who comes through the parent waits while the partition is looked at
/// under the lock and dropped: no longer than this.
const LOCKED: Duration = Duration::from_secs(1);
/// Who waits for that lock makes others wait, too: milliseconds.
const LOCK_TIMEOUT: i32 = 100;

/// Drops the partition if its time has passed and no row in it is live.
///
/// Looked at twice: without a lock that hinders anybody, then under the lock.
pub(super) fn drop_if_past(key: TableKey) -> Result<Whole, Failure> {
    let leaf = pg_sys::Oid::from(key.relid);
    let holder = match txn::run(|| candidate(leaf))? {
        Candidate::Ready(policy) => policy.holder,
        Candidate::NotYet => return Ok(Whole::NotYet),
        Candidate::Kept => return Ok(Whole::Kept),
    };
    session::force(
        "lock_timeout",
        &LOCK_TIMEOUT.min(settings::lock_timeout_ms()).to_string(),
    );
    let dropped = txn::run_within(LOCKED, || {
        if !locks::try_share_extension() || !locks::try_share_policy(holder) {
            return Err(Failure::new(
                PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE,
                "the time to live is being changed",
            ));
        }
        if partitions::lock_for_drop(leaf).is_none() {
            return Ok(None);
        }
        match candidate(leaf)? {
            Candidate::Ready(policy) if policy.holder == holder => {}
            _ => return Ok(None),
        }
        let name = catalog::qualified_name(leaf);
        partitions::drop_whole(leaf)?;
        Ok(Some(name))
    });
    session::force("lock_timeout", &settings::lock_timeout_ms().to_string());
    let Some(name) = dropped? else {
        return Ok(Whole::Kept);
    };
    state::forget_dropped(key, holder.to_u32());
    log::debug(&format!(
        "ttl_ext dropped partition {name}, in which every row was expired"
    ));
    Ok(Whole::Dropped)
}

/// Whether a partition may go.
enum Candidate {
    /// By this policy.
    Ready(Rc<TablePolicy>),
    NotYet,
    Kept,
}

/// Whether the partition's time has passed, by the default or a TTL index, and no row is
/// kept alive by its override or by what is no date.
fn candidate(leaf: pg_sys::Oid) -> Result<Candidate, Failure> {
    // A partition with a label of its own has no parent that asked for it.
    let policy = cache::policy(leaf).filter(|policy| policy.holder != leaf);
    let (Some(policy), Some(label)) = (policy, governing_label(leaf)) else {
        return Ok(Candidate::NotYet);
    };
    if !label.policy.drop_partitions || label.policy.is_restored(label.holder.to_u32()) {
        return Ok(Candidate::NotYet);
    }
    let now = background::now();
    let past = match past_by_rule(leaf, &policy, now)? {
        Past::No => past_by_clock(leaf, &policy, label.policy.ts_column.as_deref(), now)?,
        past => past,
    };
    // Functions of the partition's owner may run in the look below, and must not
    // prepare the ground for what is done as the parent's.
    Ok(match past {
        Past::No => Candidate::NotYet,
        _ if !partitions::has_parents_owner(leaf) => Candidate::Kept,
        Past::PerhapsNotAll if partitions::has_live_row(leaf, &policy)? => Candidate::Kept,
        _ => Candidate::Ready(policy),
    })
}

/// What a partition's bounds say of its rows.
enum Past {
    No,
    /// Single rows may live nevertheless.
    PerhapsNotAll,
    All,
}

fn past_by_clock(
    leaf: pg_sys::Oid,
    policy: &TablePolicy,
    ts_column: Option<&str>,
    now: i64,
) -> Result<Past, Failure> {
    let (Some(clock), Some(name)) = (policy.clock, ts_column) else {
        return Ok(Past::No);
    };
    let column = DateColumn {
        name,
        kind: DateKind::Timestamptz,
    };
    let range = bounds::range(leaf, column)?;
    Ok(match range {
        Some(range) if bounds::is_past(range.newest, policy.default_ttl, now) => {
            if clock.ttl.is_some() {
                Past::PerhapsNotAll
            } else {
                Past::All
            }
        }
        _ => Past::No,
    })
}

/// The column by whose value rows expire by the rule.
fn date_column(rule: &Rule) -> DateColumn<'_> {
    DateColumn {
        name: &rule.column_name,
        kind: rule.date.kind,
    }
}

/// M11 by the column of a TTL index that all rows are in.
fn past_by_rule(leaf: pg_sys::Oid, policy: &TablePolicy, now: i64) -> Result<Past, Failure> {
    for rule in policy.rules.iter().filter(|rule| rule.covers_all_rows()) {
        let range = bounds::range(leaf, date_column(rule))?;
        match range {
            Some(range) if bounds::is_past_by_index(range.newest, rule.seconds, now) => {
                return Ok(if range.reaches_minus_infinity {
                    Past::PerhapsNotAll
                } else {
                    Past::All
                });
            }
            _ => {}
        }
    }
    Ok(Past::No)
}

//! Before a statement that writes many rows: removes the table's few expired rows, so that the
//! trigger can be skipped.

use super::liveness::Liveness;
use crate::clock::now::now;
use crate::deletion::message;
use crate::pg::abi::context::Context;
use crate::pg::catalog;
use crate::pg::exec::relation;
use crate::pg::exec::scan::{self, Met};
use crate::pg::server::background;
use crate::policy;
use crate::store::expiry_index::{self, ExpectedIndex};
use crate::store::{TablePolicy, cache, expected_indexes, governing_label};
use pgrx::pg_sys;

/// The most expired rows that are removed before one statement.
const FEW_ROWS: u32 = 1000;
/// The same, however many rows the statement will write.
const MANY_ROWS: f64 = 1_000_000.0;
/// Of the rows to be written, the part that may be removed first: a deletion costs about an
/// eighth of what the trigger does for as many rows as come.
const PART: f64 = 0.25;
/// The most index entries that are read for it; they may be dead.
const FEW_ENTRIES: u32 = 20_000;

/// True if no row of the table is expired, after removing a few; false also where that cannot be
/// decided quickly.
pub(super) fn has_no_expired_row(
    table: &relation::Open,
    relid: pg_sys::Oid,
    budget: &mut Budget,
) -> bool {
    if catalog::class(relid).is_none_or(|c| c.relkind != pg_sys::RELKIND_RELATION) {
        // A partitioned table has no rows of its own.
        return true;
    }
    let Some(policy) = cache::policy(relid).filter(|policy| policy.hides()) else {
        return true;
    };
    // By a TTL index new rows may come expired.
    let Some(clock) = policy.clock.filter(|_| policy.rules.is_empty()) else {
        return false;
    };
    // In a restored table only the row in a new row's way is deleted.
    let restored = governing_label(relid).is_none_or(|label| label.policy.restored);
    // Nor where expired rows are kept (C23, C24).
    let kept = policy.keep_expired > 0 || policy.waits_until(background::now()).is_some();
    let may_delete = !restored
        && !kept
        && policy.archive.is_none()
        && !table.deletion_concerns_others()
        && table.passes_replica_identity_check();
    Context::with_current(|memory| {
        let liveness = Liveness::of(&policy, relid, memory);
        expected_indexes(&policy).into_iter().all(|expected| {
            let Some(cutoff) = cutoff(expected, &policy) else {
                return true;
            };
            let serving = expiry_index::find(relid, expected, &clock.ts, clock.ttl.as_ref());
            let by_expiry_key = clock.ttl.map_or(vec![], |ttl| {
                expiry_index::find_by_expiry_key(relid, &clock.ts, &ttl)
            });
            serving
                .into_iter()
                .find(|&index| catalog::is_btree(index))
                .is_some_and(|index| {
                    let expired = Expired {
                        index,
                        range: range(expected, cutoff, by_expiry_key.contains(&index)),
                        liveness,
                        may_delete,
                    };
                    remove_expired(table, &expired, budget)
                })
        })
    })
}

/// Rows whose key is not above this one are expired; `None` if none can be by this index.
fn cutoff(expected: ExpectedIndex, policy: &TablePolicy) -> Option<i64> {
    match expected {
        ExpectedIndex::OverridingByExpiry => Some(now()),
        ExpectedIndex::AllByTimestamp | ExpectedIndex::InheritingByTimestamp => policy
            .expiring_default()
            .map(|seconds| policy::cutoff(now(), seconds)),
    }
}

/// The keys that an index has for rows up to this cutoff.
fn range(expected: ExpectedIndex, cutoff: i64, by_expiry_key: bool) -> (i64, i64) {
    match expected {
        _ if !by_expiry_key => (i64::MIN, cutoff),
        ExpectedIndex::OverridingByExpiry => (i64::MIN, policy::overriding_key(cutoff)),
        _ => (0, policy::inheriting_key(cutoff)),
    }
}

/// What may be spent on one statement.
pub(super) struct Budget {
    rows: u32,
    entries: u32,
    /// A row was deleted, so the table must stay locked.
    pub(super) deleted: bool,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self {
            rows: FEW_ROWS,
            entries: FEW_ENTRIES,
            deleted: false,
        }
    }

    /// For a statement that will write about so many rows.
    pub(super) fn for_rows(estimate: f64) -> Self {
        let rows = (estimate * PART).min(MANY_ROWS) as u32;
        Self {
            rows: rows.max(FEW_ROWS),
            entries: rows.saturating_mul(2).max(FEW_ENTRIES),
            deleted: false,
        }
    }
}

/// The expired rows that an index leads to.
struct Expired<'a> {
    index: pg_sys::Oid,
    /// The first and the last key that expired rows have.
    range: (i64, i64),
    liveness: Liveness<'a>,
    /// False if DELETE has side effects, or would fail.
    may_delete: bool,
}

/// Removes expired rows; true if none is left. A row that another session writes, deletes or
/// locks is left.
///
/// The index alone does not decide: without a predicate it also holds rows whose override may
/// keep them live.
fn remove_expired(table: &relation::Open, expired: &Expired<'_>, budget: &mut Budget) -> bool {
    let (name, mut deleted) = (catalog::qualified_name(table.table().oid()), 0);
    let none_left = scan::each_between(table, expired.index, expired.range, &mut |met| match met {
        Met::Entry if budget.entries == 0 => false,
        Met::Entry => {
            budget.entries -= 1;
            true
        }
        Met::Unfinished => false,
        Met::Version(row) if expired.liveness.is_live(row) => true,
        Met::Version(row) => {
            if !expired.may_delete || budget.rows == 0 {
                return false;
            }
            if deleted == 0 {
                message::begin(&name);
            }
            budget.rows -= 1;
            budget.deleted = true;
            deleted += 1;
            row.delete_if_free()
        }
    });
    if deleted > 0 {
        message::end(&name, deleted);
    }
    none_left
}

//! Before a statement that writes many rows: removes the table's few expired rows, so that the
//! trigger can be skipped.

use super::liveness::Liveness;
use crate::clock::now::now;
use crate::deletion::message;
use crate::pg::{catalog, relation};
use crate::policy;
use crate::store::expiry_index::{self, ExpectedIndex};
use crate::store::{TablePolicy, cache, expected_indexes, governing_label};
use pgrx::pg_sys::{self, TM_Result};

/// The most expired rows that are removed before one statement.
const FEW_ROWS: u32 = 1000;
/// The most index entries that are read for it; they may be dead.
const FEW_ENTRIES: u32 = 20_000;

/// True if no row of the table is expired, after removing a few; false also where that cannot be
/// told quickly.
///
/// # Safety
/// The table is open and locked.
pub(super) unsafe fn has_no_expired_row(
    table: &relation::Open,
    relid: pg_sys::Oid,
    budget: &mut Budget,
) -> bool {
    // SAFETY: as required of the caller.
    unsafe {
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
        let liveness = Liveness::of(&policy);
        // In a restored table only the row in a new row's way is deleted.
        let restored = governing_label(relid)
            .is_none_or(|label| label.policy.is_restored(label.labelled_table.to_u32()));
        let may_delete =
            !restored && !table.deletion_concerns_others() && table.passes_replica_identity_check();
        expected_indexes(&policy).into_iter().all(|expected| {
            let Some(cutoff) = cutoff(expected, &policy) else {
                return true;
            };
            expiry_index::find(relid, expected, &clock.ts, clock.ttl.as_ref())
                .into_iter()
                .find(|&index| catalog::is_btree(index))
                .is_some_and(|index| {
                    let expired = Expired {
                        index,
                        cutoff,
                        liveness,
                        may_delete,
                    };
                    remove_expired(table, &expired, budget)
                })
        })
    }
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
}

/// The expired rows that an index leads to.
struct Expired {
    index: pg_sys::Oid,
    /// Expired rows have keys up to this one.
    cutoff: i64,
    liveness: Liveness,
    /// False if DELETE has side effects, or would fail.
    may_delete: bool,
}

/// Removes expired rows; true if none is left. A row that another session writes, deletes or
/// locks is left.
///
/// The index alone does not decide: without a predicate it also holds rows whose override may
/// keep them live.
///
/// # Safety
/// The table is open and locked.
unsafe fn remove_expired(table: &relation::Open, expired: &Expired, budget: &mut Budget) -> bool {
    let (relation, share) = (table.as_ptr(), pg_sys::AccessShareLock.cast_signed());
    // SAFETY: table and index are open and locked until the scan has ended; the key's
    // function compares two timestamptz, of which F_TIMESTAMPTZ_LE is the OID.
    unsafe {
        let index = pg_sys::index_open(expired.index, share);
        let mut dirty = pg_sys::SnapshotData {
            snapshot_type: pg_sys::SnapshotType::SNAPSHOT_DIRTY,
            ..Default::default()
        };
        let mut key = pg_sys::ScanKeyData::default();
        pg_sys::ScanKeyInit(
            &mut key,
            1,
            pg_sys::BTLessEqualStrategyNumber as u16,
            pg_sys::Oid::from(pg_sys::F_TIMESTAMPTZ_LE),
            pg_sys::Datum::from(expired.cutoff),
        );
        let slot = pg_sys::table_slot_create(relation, core::ptr::null_mut());
        let scan = relation::begin_index_scan(relation, index, &mut dirty, 1);
        pg_sys::index_rescan(scan, &mut key, 1, core::ptr::null_mut(), 0);
        let forward = pg_sys::ScanDirection::ForwardScanDirection;
        let mut none_left = true;
        let (name, mut deleted) = (catalog::qualified_name((*relation).rd_id), 0);
        while none_left && !pg_sys::index_getnext_tid(scan, forward).is_null() {
            if budget.entries == 0 {
                none_left = false;
                break;
            }
            budget.entries -= 1;
            while none_left && pg_sys::index_fetch_heap(scan, slot) {
                let in_progress = dirty.xmin != pg_sys::InvalidTransactionId
                    || dirty.xmax != pg_sys::InvalidTransactionId;
                none_left = !in_progress;
                if none_left && !expired.liveness.is_live(slot) {
                    none_left = expired.may_delete && budget.rows > 0;
                    if !none_left {
                        break;
                    }
                    if deleted == 0 {
                        message::begin(&name);
                    }
                    budget.rows -= 1;
                    budget.deleted = true;
                    deleted += 1;
                    none_left = delete(relation, &mut (*slot).tts_tid);
                }
                if !(*scan).xs_heap_continue {
                    break;
                }
            }
        }
        if deleted > 0 {
            message::end(&name, deleted);
        }
        pg_sys::index_endscan(scan);
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        pg_sys::index_close(index, share);
        none_left
    }
}

/// Deletes a row unless another session has locked it; true if it is gone.
///
/// # Safety
/// `relation` is an open and locked heap, and DELETE has no side effects.
unsafe fn delete(relation: pg_sys::Relation, tid: &mut pg_sys::ItemPointerData) -> bool {
    let mut failure = pg_sys::TM_FailureData::default();
    // SAFETY: as required of the caller.
    unsafe {
        pg_sys::CheckCmdReplicaIdentity(relation, pg_sys::CmdType::CMD_DELETE);
        let result = pg_sys::table_tuple_delete(
            relation,
            tid,
            pg_sys::GetCurrentCommandId(true),
            core::ptr::null_mut(),
            core::ptr::null_mut(),
            false,
            &mut failure,
            false,
        );
        result == TM_Result::TM_Ok
    }
}

//! COPY FROM keeps its multi-insert, which any BEFORE INSERT trigger would turn off.
//!
//! What is expired is so by the statement's clock: a row that lives when COPY starts
//! lives until COPY ends. So where no row of the table is expired at the start,
//! there is nothing for the trigger to do, and COPY is not told of it
//! (`docs/decisions/0016-free-keys-by-trigger.md`). A few expired rows are removed
//! first; where there are many, or somebody is at work on one, the trigger stays.

use super::unneeded;
use crate::clock::now::now;
use crate::pg::extension::{self, Functions};
use crate::pg::index::{self, Wanted};
use crate::pg::{catalog, locks, relation, roles};
use crate::policy;
use crate::settings;
use crate::store::{TablePolicy, cache, expected_indexes};
use pgrx::pg_sys::{self, CopyStmt, TM_Result};
use std::cell::RefCell;
use std::ffi::CStr;

/// As many expired rows are removed before a COPY, at most.
const FEW_ROWS: u32 = 1000;
/// As many entries of an index are looked at, at most; they may be dead.
const FEW_ENTRIES: u32 = 20_000;
/// As many partitions are looked at, at most.
const FEW_PARTITIONS: usize = 100;

thread_local! {
    /// The tables whose triggers COPY is not told of.
    static SPARED: RefCell<Vec<pg_sys::Oid>> = const { RefCell::new(Vec::new()) };
}

/// Before a COPY FROM: leaves the trigger out where it has nothing to do. The table
/// is locked as COPY will lock it.
///
/// # Safety
/// `stmt` is a COPY FROM of the parser.
pub(crate) unsafe fn begin_copy(stmt: *mut CopyStmt, relid: pg_sys::Oid) {
    let Some(functions) = extension::functions() else {
        return;
    };
    let Some(policy) = cache::policy(relid).filter(TablePolicy::hides) else {
        return;
    };
    // SAFETY: as required of the caller.
    if settings::show_expired() || !unsafe { stamps_all_rows(stmt, relid, &policy) } {
        return;
    }
    let tables = catalog::all_inheritors(relid);
    let is_partitioned =
        catalog::class(relid).is_some_and(|c| c.relkind == pg_sys::RELKIND_PARTITIONED_TABLE);
    // COPY writes to a table itself or, through a partitioned one, to its partitions.
    let tables = if is_partitioned { tables } else { vec![relid] };
    if tables.len() > FEW_PARTITIONS || !roles::may_insert(relid) {
        return;
    }
    let mut budget = Budget::new();
    for table in tables {
        // A partition to which COPY may not come at all: it must neither be waited for
        // nor stay locked.
        let lock = pg_sys::RowExclusiveLock;
        if !locks::try_relation(table, lock) {
            continue;
        }
        if catalog::class(table).is_some() {
            // SAFETY: the table is locked, and so cannot vanish.
            unsafe { spare(table, &functions, &mut budget) };
            if std::mem::take(&mut budget.deleted) {
                continue;
            }
        }
        locks::release(table, lock);
    }
}

/// Leaves the trigger of one table out, if it is the only one of its kind and has
/// nothing to do.
///
/// # Safety
/// The table is locked.
unsafe fn spare(table: pg_sys::Oid, functions: &Functions, budget: &mut Budget) {
    // SAFETY: as required of the caller; the description belongs to the open relation.
    unsafe {
        let open = relation::Open::locked(table);
        let needs_look = (*open.as_ptr()).trigdesc.as_ref().is_some_and(|triggers| {
            triggers.trig_insert_before_row
                && unneeded::is_only_one(triggers, functions, pg_sys::TRIGGER_TYPE_INSERT)
        });
        if !needs_look || !has_no_expired_row(&open, table, budget) {
            return;
        }
        // The look may have had the description read anew.
        if let Some(triggers) = (*open.as_ptr()).trigdesc.as_mut() {
            SPARED.with_borrow_mut(|spared| spared.push(table));
            triggers.trig_insert_before_row = false;
        }
    }
}

/// After COPY, and when a transaction fails: the tables' triggers are read anew.
pub(crate) fn end_copies() {
    for table in SPARED.take() {
        // SAFETY: what PostgreSQL itself does at an abort, too; reads no catalog then.
        unsafe { pg_sys::RelationCacheInvalidateEntry(table) };
    }
}

/// Whether rows get the time of modification from its default: if the data give it,
/// rows may be expired when they come.
unsafe fn stamps_all_rows(stmt: *mut CopyStmt, relid: pg_sys::Oid, policy: &TablePolicy) -> bool {
    // SAFETY: a list of String nodes; NIL means all columns.
    unsafe {
        if (*stmt).attlist.is_null() || !policy.ts.has_default {
            return false;
        }
        crate::pg::lists::iter::<pg_sys::String>((*stmt).attlist).all(|node| {
            let name = CStr::from_ptr((*node).sval).to_string_lossy();
            catalog::attribute(relid, &name).is_some_and(|column| column.attno != policy.ts.attno)
        })
    }
}

/// Whether no row of the table is expired, after a few have been removed; false also
/// where that cannot be told quickly.
unsafe fn has_no_expired_row(
    table: &relation::Open,
    relid: pg_sys::Oid,
    budget: &mut Budget,
) -> bool {
    // SAFETY: open and locked.
    unsafe {
        if catalog::class(relid).is_none_or(|c| c.relkind != pg_sys::RELKIND_RELATION) {
            // A partitioned table has no rows of its own.
            return true;
        }
        let Some(policy) = cache::policy(relid).filter(TablePolicy::hides) else {
            return true;
        };
        if table.deletion_concerns_others() {
            budget.rows = 0;
        }
        expected_indexes(&policy).into_iter().all(|wanted| {
            let Some(cutoff) = cutoff(wanted, &policy) else {
                return true;
            };
            index::find(relid, wanted, &policy.ts, policy.ttl.as_ref())
                .into_iter()
                .find(|&index| catalog::is_btree(index))
                .is_some_and(|index| clear_up_to(table, index, cutoff, budget))
        })
    }
}

/// Rows with a key up to this one are expired; `None` if none can be by this index.
fn cutoff(wanted: Wanted, policy: &TablePolicy) -> Option<i64> {
    match wanted {
        Wanted::OverridingByExpiry => Some(now()),
        Wanted::AllByTimestamp | Wanted::InheritingByTimestamp => policy
            .default_ttl
            .filter(|&seconds| seconds > 0)
            .map(|seconds| policy::cutoff(now(), seconds)),
    }
}

/// How much is done for a COPY.
struct Budget {
    rows: u32,
    entries: u32,
    /// Whether a row has been deleted, so that its table must stay locked.
    deleted: bool,
}

impl Budget {
    fn new() -> Self {
        Self {
            rows: FEW_ROWS,
            entries: FEW_ENTRIES,
            deleted: false,
        }
    }
}

/// Removes the rows whose key in this index is not above `cutoff`; whether none is
/// left. A row that another session is writing, deleting or holding is left.
unsafe fn clear_up_to(
    table: &relation::Open,
    index: pg_sys::Oid,
    cutoff: i64,
    budget: &mut Budget,
) -> bool {
    let (relation, share) = (table.as_ptr(), pg_sys::AccessShareLock.cast_signed());
    // SAFETY: table and index are open and locked until the scan has ended; the key's
    // function compares two timestamptz, of which F_TIMESTAMPTZ_LE is the OID.
    unsafe {
        let index = pg_sys::index_open(index, share);
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
            pg_sys::Datum::from(cutoff),
        );
        let slot = pg_sys::table_slot_create(relation, core::ptr::null_mut());
        let scan = relation::begin_index_scan(relation, index, &mut dirty, 1);
        pg_sys::index_rescan(scan, &mut key, 1, core::ptr::null_mut(), 0);
        let forward = pg_sys::ScanDirection::ForwardScanDirection;
        let mut clear = true;
        while clear && !pg_sys::index_getnext_tid(scan, forward).is_null() {
            if budget.entries == 0 {
                clear = false;
                break;
            }
            budget.entries -= 1;
            while clear && pg_sys::index_fetch_heap(scan, slot) {
                let in_progress = dirty.xmin != pg_sys::InvalidTransactionId
                    || dirty.xmax != pg_sys::InvalidTransactionId;
                clear = !in_progress && budget.rows > 0;
                if clear {
                    budget.rows -= 1;
                    budget.deleted = true;
                    clear = delete(relation, &mut (*slot).tts_tid);
                }
                if !(*scan).xs_heap_continue {
                    break;
                }
            }
        }
        pg_sys::index_endscan(scan);
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        pg_sys::index_close(index, share);
        clear
    }
}

/// Deletes a row, unless somebody holds it; whether it is gone.
unsafe fn delete(relation: pg_sys::Relation, place: &mut pg_sys::ItemPointerData) -> bool {
    let mut failure = pg_sys::TM_FailureData::default();
    // SAFETY: an open heap table, whose deletions are nobody else's business.
    unsafe {
        pg_sys::CheckCmdReplicaIdentity(relation, pg_sys::CmdType::CMD_DELETE);
        let result = pg_sys::table_tuple_delete(
            relation,
            place,
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

//! PostgreSQL's functions without pgrx's guard, for code that errors may pass through.
//!
//! pgrx's bindings turn an error into a Rust panic, which loses CONTEXT and the names of schema,
//! table and constraint, and cost a `sigsetjmp` per call. These do neither: they may be called
//! only from unguarded `extern "C-unwind"` functions that own no values with destructors
//! (`docs/decisions/0004-unguarded-trampolines.md`).

#![allow(ffi_unwind_calls, reason = "PostgreSQL's own longjmp passes")]

use core::ffi::c_int;
use core::ptr::null_mut;
use pgrx::pg_sys::{self, BlockNumber, CmdType, Datum, EPQState, EState, ForkNumber, HeapTuple};
use pgrx::pg_sys::{IndexInfo, IndexScanDesc, ItemPointer, LOCKMODE, MemoryContext, Oid, Relation};
use pgrx::pg_sys::{ResultRelInfo, ScanDirection, ScanKey, Snapshot};
use pgrx::pg_sys::{TransactionId, TransitionCaptureState, TupleDesc, TupleTableSlot, XLTW_Oper};

type EStatePtr = *mut EState;
type ResultRelPtr = *mut ResultRelInfo;
type SlotPtr = *mut TupleTableSlot;
type CapturePtr = *mut TransitionCaptureState;

// Their pointers are to constants in some versions only.
unsafe extern "C-unwind" {
    pub(in crate::pg) fn heap_modify_tuple_by_cols(
        tuple: HeapTuple,
        descriptor: TupleDesc,
        count: c_int,
        columns: *const c_int,
        values: *const Datum,
        isnull: *const bool,
    ) -> HeapTuple;
    pub(in crate::pg) fn XactLockTableWait(
        xid: TransactionId,
        relation: Relation,
        tid: ItemPointer,
        oper: XLTW_Oper::Type,
    );
}

bound! { "C-unwind"
    pub(in crate::pg) fn index_open(relation_id: Oid, lockmode: LOCKMODE) -> Relation;
    pub(in crate::pg) fn index_close(relation: Relation, lockmode: LOCKMODE);
    pub(super) fn index_beginscan(
        heap: Relation,
        index: Relation,
        snapshot: Snapshot,
        #[cfg(since18)] instrument: *mut pg_sys::IndexScanInstrumentation,
        nkeys: c_int,
        norderbys: c_int,
        #[cfg(since19)] flags: u32,
    ) -> IndexScanDesc;
    pub(in crate::pg) fn index_rescan(
        s: IndexScanDesc,
        k: ScanKey,
        nk: c_int,
        by: ScanKey,
        nby: c_int,
    );
    pub(in crate::pg) fn index_getnext_slot(
        s: IndexScanDesc,
        d: ScanDirection::Type,
        to: SlotPtr,
    ) -> bool;
    pub(in crate::pg) fn index_endscan(scan: IndexScanDesc);
    pub(in crate::pg) fn ScanKeyEntryInitialize(
        entry: ScanKey,
        flags: c_int,
        attribute: i16,
        strategy: u16,
        subtype: Oid,
        collation: Oid,
        procedure: Oid,
        argument: Datum,
    );
    pub(in crate::pg) fn FormIndexDatum(
        info: *mut IndexInfo,
        row: SlotPtr,
        estate: EStatePtr,
        values: *mut Datum,
        isnull: *mut bool,
    );
    pub(in crate::pg) fn OidFunctionCall2Coll(
        proc: Oid,
        collation: Oid,
        a: Datum,
        b: Datum,
    ) -> Datum;
    pub(in crate::pg) fn datum_image_eq(a: Datum, b: Datum, by_value: bool, length: c_int) -> bool;
    pub(in crate::pg) fn table_slot_create(
        table: Relation,
        registry: *mut *mut pg_sys::List,
    ) -> SlotPtr;
    pub(in crate::pg) fn ExecDropSingleTupleTableSlot(slot: SlotPtr);
    pub(crate) fn slot_getsomeattrs_int(slot: SlotPtr, attnum: c_int);
    pub(in crate::pg) fn table_open(relation_id: Oid, lockmode: LOCKMODE) -> Relation;
    pub(in crate::pg) fn RelationGetNumberOfBlocksInFork(
        r: Relation,
        f: ForkNumber::Type,
    ) -> BlockNumber;
    pub(in crate::pg) fn table_close(relation: Relation, lockmode: LOCKMODE);
    pub(in crate::pg) fn SpeculativeInsertionWait(xid: TransactionId, token: u32);
    pub(in crate::pg) fn TransactionIdIsCurrentTransactionId(xid: TransactionId) -> bool;
    pub(in crate::pg) fn CommandCounterIncrement();
    pub(in crate::pg) fn GetLatestSnapshot() -> Snapshot;
    pub(in crate::pg) fn RegisterSnapshot(snapshot: Snapshot) -> Snapshot;
    pub(in crate::pg) fn UnregisterSnapshot(snapshot: Snapshot);
    pub(in crate::pg) fn PushActiveSnapshot(snapshot: Snapshot);
    pub(in crate::pg) fn PopActiveSnapshot();
    pub(in crate::pg) fn CheckCmdReplicaIdentity(relation: Relation, command: CmdType::Type);
    pub(in crate::pg) fn MemoryContextReset(context: MemoryContext);

    pub(in crate::pg) fn AfterTriggerEndQuery(estate: EStatePtr);
    pub(in crate::pg) fn ExecBSDeleteTriggers(estate: EStatePtr, target: ResultRelPtr);
    pub(super) fn ExecBRDeleteTriggers(
        estate: EStatePtr,
        epqstate: *mut EPQState,
        target: ResultRelPtr,
        tupleid: ItemPointer,
        foreign: HeapTuple,
        epqslot: *mut SlotPtr,
        #[cfg(since16)] result: *mut pg_sys::TM_Result::Type,
        #[cfg(since16)] failure: *mut pg_sys::TM_FailureData,
        #[cfg(since18)] is_merge_delete: bool,
    ) -> bool;
    pub(in crate::pg) fn ExecARDeleteTriggers(
        estate: EStatePtr,
        target: ResultRelPtr,
        tupleid: ItemPointer,
        foreign: HeapTuple,
        capture: CapturePtr,
        is_crosspart_update: bool,
    );
    pub(in crate::pg) fn ExecASDeleteTriggers(
        estate: EStatePtr,
        target: ResultRelPtr,
        capture: CapturePtr,
    );
}

/// Fires the BEFORE DELETE triggers for a row that the transaction has locked; true if it is
/// still to be deleted. The same in all versions.
///
/// # Safety
/// As PostgreSQL's function; its errors pass through.
pub(in crate::pg) unsafe fn before_row_delete_triggers(
    estate: EStatePtr,
    epq: *mut EPQState,
    target: ResultRelPtr,
    tid: ItemPointer,
) -> bool {
    // SAFETY: as required of the caller.
    unsafe {
        #[cfg(not(since16))]
        return ExecBRDeleteTriggers(estate, epq, target, tid, null_mut(), null_mut());
        #[cfg(since16)]
        {
            let (foreign, slot, result, failure) = (null_mut(), null_mut(), null_mut(), null_mut());
            #[cfg(not(since18))]
            return ExecBRDeleteTriggers(estate, epq, target, tid, foreign, slot, result, failure);
            #[cfg(since18)]
            return ExecBRDeleteTriggers(
                estate, epq, target, tid, foreign, slot, result, failure, false,
            );
        }
    }
}

/// `index_beginscan` for `nkeys` keys, the same in all versions.
///
/// # Safety
/// As PostgreSQL's function; its errors pass through.
pub(in crate::pg) unsafe fn begin_index_scan(
    heap: Relation,
    index: Relation,
    snapshot: Snapshot,
    nkeys: c_int,
) -> IndexScanDesc {
    // SAFETY: as required of the caller.
    unsafe {
        #[cfg(not(since18))]
        return index_beginscan(heap, index, snapshot, nkeys, 0);
        #[cfg(all(since18, not(since19)))]
        return index_beginscan(heap, index, snapshot, null_mut(), nkeys, 0);
        #[cfg(since19)]
        return index_beginscan(heap, index, snapshot, null_mut(), nkeys, 0, 0);
    }
}

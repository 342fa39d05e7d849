//! PostgreSQL's functions without pgrx's guard, for code that errors may pass through.
//!
//! pgrx's bindings turn an error into a Rust panic, which loses CONTEXT and the names of schema,
//! table and constraint, and cost a `sigsetjmp` per call. These do neither: they may be called
//! only from unguarded `extern "C-unwind"` functions that hold nothing that needs dropping
//! (`docs/decisions/0004-unguarded-trampolines.md`).

#![allow(
    ffi_unwind_calls,
    reason = "an error that unwinds from C is PostgreSQL's own longjmp"
)]

use core::ffi::c_int;
use pgrx::pg_sys::{self, Datum, Oid, Relation, TupleTableSlot};

unsafe extern "C-unwind" {
    pub(crate) fn index_open(relation_id: Oid, lockmode: pg_sys::LOCKMODE) -> Relation;
    pub(crate) fn index_close(relation: Relation, lockmode: pg_sys::LOCKMODE);
    #[cfg(not(feature = "pg18"))]
    fn index_beginscan(
        heap: Relation,
        index: Relation,
        snapshot: pg_sys::Snapshot,
        nkeys: c_int,
        norderbys: c_int,
    ) -> pg_sys::IndexScanDesc;
    #[cfg(feature = "pg18")]
    fn index_beginscan(
        heap: Relation,
        index: Relation,
        snapshot: pg_sys::Snapshot,
        instrument: *mut core::ffi::c_void,
        nkeys: c_int,
        norderbys: c_int,
    ) -> pg_sys::IndexScanDesc;
    pub(crate) fn index_rescan(
        scan: pg_sys::IndexScanDesc,
        keys: pg_sys::ScanKey,
        nkeys: c_int,
        orderbys: pg_sys::ScanKey,
        norderbys: c_int,
    );
    pub(crate) fn index_getnext_slot(
        scan: pg_sys::IndexScanDesc,
        direction: pg_sys::ScanDirection::Type,
        slot: *mut TupleTableSlot,
    ) -> bool;
    pub(crate) fn index_endscan(scan: pg_sys::IndexScanDesc);
    pub(crate) fn ScanKeyEntryInitialize(
        entry: pg_sys::ScanKey,
        flags: c_int,
        attribute: pg_sys::AttrNumber,
        strategy: pg_sys::StrategyNumber,
        subtype: Oid,
        collation: Oid,
        procedure: pg_sys::RegProcedure,
        argument: Datum,
    );
    pub(crate) fn FormIndexDatum(
        info: *mut pg_sys::IndexInfo,
        slot: *mut TupleTableSlot,
        estate: *mut pg_sys::EState,
        values: *mut Datum,
        isnull: *mut bool,
    );
    pub(crate) fn OidFunctionCall2Coll(
        function: Oid,
        collation: Oid,
        arg1: Datum,
        arg2: Datum,
    ) -> Datum;
    pub(crate) fn datum_image_eq(a: Datum, b: Datum, by_value: bool, length: c_int) -> bool;
    pub(crate) fn table_slot_create(
        relation: Relation,
        registry: *mut *mut pg_sys::List,
    ) -> *mut TupleTableSlot;
    pub(crate) fn ExecDropSingleTupleTableSlot(slot: *mut TupleTableSlot);
    pub(crate) fn slot_getsomeattrs_int(slot: *mut TupleTableSlot, attnum: c_int);
    pub(crate) fn table_open(relation_id: Oid, lockmode: pg_sys::LOCKMODE) -> Relation;
    pub(crate) fn RelationGetNumberOfBlocksInFork(
        relation: Relation,
        fork: pg_sys::ForkNumber::Type,
    ) -> pg_sys::BlockNumber;
    pub(crate) fn table_close(relation: Relation, lockmode: pg_sys::LOCKMODE);

    pub(crate) fn heap_modify_tuple_by_cols(
        tuple: pg_sys::HeapTuple,
        descriptor: pg_sys::TupleDesc,
        count: c_int,
        columns: *const c_int,
        values: *mut Datum,
        isnull: *mut bool,
    ) -> pg_sys::HeapTuple;

    pub(crate) fn XactLockTableWait(
        xid: pg_sys::TransactionId,
        relation: Relation,
        ctid: pg_sys::ItemPointer,
        oper: pg_sys::XLTW_Oper::Type,
    );
    pub(crate) fn SpeculativeInsertionWait(xid: pg_sys::TransactionId, token: u32);
    pub(crate) fn TransactionIdIsCurrentTransactionId(xid: pg_sys::TransactionId) -> bool;
    pub(crate) fn CommandCounterIncrement();
    pub(crate) fn CheckCmdReplicaIdentity(relation: Relation, command: pg_sys::CmdType::Type);
    pub(crate) fn MemoryContextReset(context: pg_sys::MemoryContext);

    pub(crate) fn AfterTriggerBeginQuery();
    pub(crate) fn AfterTriggerEndQuery(estate: *mut pg_sys::EState);
    pub(crate) fn ExecBSDeleteTriggers(
        estate: *mut pg_sys::EState,
        target: *mut pg_sys::ResultRelInfo,
    );
    #[cfg(feature = "pg15")]
    fn ExecBRDeleteTriggers(
        estate: *mut pg_sys::EState,
        epqstate: *mut pg_sys::EPQState,
        target: *mut pg_sys::ResultRelInfo,
        tupleid: pg_sys::ItemPointer,
        foreign: pg_sys::HeapTuple,
        epqslot: *mut *mut TupleTableSlot,
    ) -> bool;
    #[cfg(any(feature = "pg16", feature = "pg17"))]
    fn ExecBRDeleteTriggers(
        estate: *mut pg_sys::EState,
        epqstate: *mut pg_sys::EPQState,
        target: *mut pg_sys::ResultRelInfo,
        tupleid: pg_sys::ItemPointer,
        foreign: pg_sys::HeapTuple,
        epqslot: *mut *mut TupleTableSlot,
        result: *mut pg_sys::TM_Result::Type,
        failure: *mut pg_sys::TM_FailureData,
    ) -> bool;
    #[cfg(feature = "pg18")]
    fn ExecBRDeleteTriggers(
        estate: *mut pg_sys::EState,
        epqstate: *mut pg_sys::EPQState,
        target: *mut pg_sys::ResultRelInfo,
        tupleid: pg_sys::ItemPointer,
        foreign: pg_sys::HeapTuple,
        epqslot: *mut *mut TupleTableSlot,
        result: *mut pg_sys::TM_Result::Type,
        failure: *mut pg_sys::TM_FailureData,
        is_merge_delete: bool,
    ) -> bool;
    pub(crate) fn ExecARDeleteTriggers(
        estate: *mut pg_sys::EState,
        target: *mut pg_sys::ResultRelInfo,
        tupleid: pg_sys::ItemPointer,
        foreign: pg_sys::HeapTuple,
        capture: *mut pg_sys::TransitionCaptureState,
        is_crosspart_update: bool,
    );
    pub(crate) fn ExecASDeleteTriggers(
        estate: *mut pg_sys::EState,
        target: *mut pg_sys::ResultRelInfo,
        capture: *mut pg_sys::TransitionCaptureState,
    );
}

/// Fires the BEFORE DELETE triggers for a row that the transaction has locked; true if it is
/// still to be deleted. The same in all versions.
///
/// # Safety
/// As PostgreSQL's function; its errors pass through.
pub(crate) unsafe extern "C-unwind" fn before_row_delete_triggers(
    estate: *mut pg_sys::EState,
    epq: *mut pg_sys::EPQState,
    target: *mut pg_sys::ResultRelInfo,
    tid: pg_sys::ItemPointer,
) -> bool {
    let (foreign, none) = (core::ptr::null_mut(), core::ptr::null_mut());
    // SAFETY: as required of the caller.
    unsafe {
        #[cfg(feature = "pg15")]
        return ExecBRDeleteTriggers(estate, epq, target, tid, foreign, none);
        #[cfg(not(feature = "pg15"))]
        {
            let (result, failure) = (core::ptr::null_mut(), core::ptr::null_mut());
            #[cfg(not(feature = "pg18"))]
            return ExecBRDeleteTriggers(estate, epq, target, tid, foreign, none, result, failure);
            #[cfg(feature = "pg18")]
            return ExecBRDeleteTriggers(
                estate, epq, target, tid, foreign, none, result, failure, false,
            );
        }
    }
}

/// `index_beginscan` for `nkeys` keys, the same in all versions.
///
/// # Safety
/// As PostgreSQL's function; its errors pass through.
pub(crate) unsafe extern "C-unwind" fn begin_index_scan(
    heap: Relation,
    index: Relation,
    snapshot: pg_sys::Snapshot,
    nkeys: c_int,
) -> pg_sys::IndexScanDesc {
    // SAFETY: as required of the caller.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return index_beginscan(heap, index, snapshot, nkeys, 0);
        #[cfg(feature = "pg18")]
        return index_beginscan(heap, index, snapshot, core::ptr::null_mut(), nkeys, 0);
    }
}

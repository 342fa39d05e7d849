//! The prototypes of C functions that are written by hand are those of PostgreSQL's headers, as pgrx has bound
//! them for the version that is built: what differs does not compile.

/// For each function the compiler finds the types of its arguments and its result, which must be the same on
/// both sides.
macro_rules! same {
    ($($(#[$condition:meta])* $abi:literal [$($module:tt)+] $function:ident($($argument:ident)*);)+) => {$(
        $(#[$condition])*
        const _: () = {
            #[allow(improper_ctypes_definitions, reason = "of any types")]
            const fn same<$($argument,)* R>(
                _by_hand: unsafe extern $abi fn($($argument),*) -> R,
                _bound: unsafe fn($($argument),*) -> R,
            ) {
            }
            same(super::$($module)+::$function, pgrx::pg_sys::$function);
        };
    )+};
}

same! {
    "C" [externs] GetCurrentStatementStartTimestamp();
    "C" [externs] GetCurrentTransactionStartTimestamp();
    "C" [externs] GetCurrentTransactionNestLevel();
    "C" [externs] InNoForceRLSOperation();
    "C" [externs] InSecurityRestrictedOperation();
    "C" [externs] GetCurrentTimestamp();
    "C" [externs] IsLogicalWorker();
    "C" [externs] hash_bytes(A B);
    "C" [externs] GetTopTransactionIdIfAny();
    "C" [externs] MemoryContextRegisterResetCallback(A B);
    "C-unwind" [externs] MemoryContextAlloc(A B);
    "C-unwind" [externs] GetCurrentCommandId(A);
    "C-unwind" [externs] GetActiveSnapshot();
    "C-unwind" [externs] pg_detoast_datum(A);
    "C-unwind" [externs] pg_detoast_datum_packed(A);
    "C-unwind" [externs] tuplestore_puttuple(A B);
    "C-unwind" [externs] geterrcode();
    "C-unwind" [externs] set_errcontext_domain(A);
    #[cfg(not(since19))]
    "C-unwind" [externs] die(A);
    #[cfg(since19)]
    "C-unwind" [externs] die(A B);
    #[cfg(not(since19))]
    "C-unwind" [externs] SignalHandlerForConfigReload(A);
    #[cfg(since19)]
    "C-unwind" [externs] SignalHandlerForConfigReload(A B);
    "C-unwind" [externs] cost_qual_eval_node(A B C);
    #[cfg(not(since19))]
    "C-unwind" [externs] standard_planner(A B C D);
    #[cfg(since19)]
    "C-unwind" [externs] standard_planner(A B C D E);
    "C-unwind" [externs] standard_ProcessUtility(A B C D E F G H);
    "C" [externs] SetLatch(A);
    "C-unwind" [externs::raising] makeVar(A B C D E F);
    "C-unwind" [externs::raising] makeConst(A B C D E F G);
    "C-unwind" [externs::raising] makeFuncExpr(A B C D E F);
    "C-unwind" [externs::raising] pull_varattnos(A B C);
    "C-unwind" [externs::raising] bms_is_member(A B);
    #[cfg(not(since16))]
    "C-unwind" [externs::raising] make_restrictinfo(A B C D E F G H I);
    #[cfg(since16)]
    "C-unwind" [externs::raising] make_restrictinfo(A B C D E F G H I J);
    "C-unwind" [externs::raising] lcons(A B);
    "C-unwind" [externs::raising] lappend(A B);
    "C-unwind" [unguarded] index_open(A B);
    "C-unwind" [unguarded] index_close(A B);
    #[cfg(not(since18))]
    "C-unwind" [unguarded] index_beginscan(A B C D E);
    #[cfg(all(since18, not(since19)))]
    "C-unwind" [unguarded] index_beginscan(A B C D E F);
    #[cfg(since19)]
    "C-unwind" [unguarded] index_beginscan(A B C D E F G);
    "C-unwind" [unguarded] index_rescan(A B C D E);
    "C-unwind" [unguarded] index_getnext_slot(A B C);
    "C-unwind" [unguarded] index_endscan(A);
    "C-unwind" [unguarded] ScanKeyEntryInitialize(A B C D E F G H);
    "C-unwind" [unguarded] FormIndexDatum(A B C D E);
    "C-unwind" [unguarded] OidFunctionCall2Coll(A B C D);
    "C-unwind" [unguarded] datum_image_eq(A B C D);
    "C-unwind" [unguarded] table_slot_create(A B);
    "C-unwind" [unguarded] ExecDropSingleTupleTableSlot(A);
    "C-unwind" [unguarded] slot_getsomeattrs_int(A B);
    "C-unwind" [unguarded] table_open(A B);
    "C-unwind" [unguarded] RelationGetNumberOfBlocksInFork(A B);
    "C-unwind" [unguarded] table_close(A B);
    // Before 17, no pointer is to a constant.
    #[cfg(since17)]
    "C-unwind" [unguarded] heap_modify_tuple_by_cols(A B C D E F);
    // From 19 on, one pointer is to a constant.
    #[cfg(not(since19))]
    "C-unwind" [unguarded] XactLockTableWait(A B C D);
    "C-unwind" [unguarded] SpeculativeInsertionWait(A B);
    "C-unwind" [unguarded] TransactionIdIsCurrentTransactionId(A);
    "C-unwind" [unguarded] CommandCounterIncrement();
    "C-unwind" [unguarded] SPI_connect();
    "C-unwind" [unguarded] SPI_finish();
    // From 19 on, one pointer is to a constant.
    #[cfg(not(since19))]
    "C-unwind" [unguarded] SPI_execute_snapshot(A B C D E F G H);
    "C-unwind" [unguarded] GetLatestSnapshot();
    "C-unwind" [unguarded] GetTransactionSnapshot();
    "C-unwind" [unguarded] RegisterSnapshot(A);
    "C-unwind" [unguarded] UnregisterSnapshot(A);
    "C-unwind" [unguarded] PushActiveSnapshot(A);
    "C-unwind" [unguarded] UpdateActiveSnapshotCommandId();
    "C-unwind" [unguarded] PopActiveSnapshot();
    "C-unwind" [unguarded] CheckCmdReplicaIdentity(A B);
    "C-unwind" [unguarded] MemoryContextReset(A);
    "C-unwind" [unguarded] AfterTriggerBeginQuery();
    "C-unwind" [unguarded] AfterTriggerEndQuery(A);
    "C-unwind" [unguarded] ExecBSDeleteTriggers(A B);
    #[cfg(not(since16))]
    "C-unwind" [unguarded] ExecBRDeleteTriggers(A B C D E F);
    #[cfg(all(since16, not(since18)))]
    "C-unwind" [unguarded] ExecBRDeleteTriggers(A B C D E F G H);
    #[cfg(since18)]
    "C-unwind" [unguarded] ExecBRDeleteTriggers(A B C D E F G H I);
    "C-unwind" [unguarded] ExecARDeleteTriggers(A B C D E F);
    "C-unwind" [unguarded] ExecASDeleteTriggers(A B C);
}

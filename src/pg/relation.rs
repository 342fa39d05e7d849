//! An open relation.

use pgrx::pg_sys;

/// A relation that the transaction has locked, open until dropped.
pub(crate) struct Open(pg_sys::Relation);

impl Open {
    /// Opens it; the caller holds a lock.
    pub(crate) fn locked(relid: pg_sys::Oid) -> Self {
        // SAFETY: locked by the caller, so it cannot vanish; raises if it has.
        Self(unsafe { pg_sys::table_open(relid, pg_sys::NoLock.cast_signed()) })
    }

    /// The relation.
    pub(crate) fn as_ptr(&self) -> pg_sys::Relation {
        self.0
    }

    /// Whether DELETE has side effects, or the table is no heap ([`deletion_concerns_others`]).
    pub(crate) fn deletion_concerns_others(&self) -> bool {
        // SAFETY: open.
        unsafe { deletion_concerns_others(self.0) }
    }

    /// Raises the error that a DELETE would on a table that is published without a replica
    /// identity.
    pub(crate) fn check_replica_identity(&self) {
        // SAFETY: open and locked.
        unsafe { pg_sys::CheckCmdReplicaIdentity(self.0, pg_sys::CmdType::CMD_DELETE) };
    }

    /// Whether a deletion passes [`Self::check_replica_identity`].
    pub(crate) fn passes_replica_identity_check(&self) -> bool {
        let mut published = pg_sys::PublicationDesc::default();
        // SAFETY: open and locked.
        unsafe {
            pg_sys::RelationBuildPublicationDesc(self.0, &mut published);
            #[cfg(feature = "pg18")]
            if !published.gencols_valid_for_delete {
                return false;
            }
            published.rf_valid_for_delete
                && published.cols_valid_for_delete
                && (!published.pubactions.pubdelete
                    || (*(*self.0).rd_rel).relreplident
                        == pg_sys::REPLICA_IDENTITY_FULL.cast_signed()
                    || pg_sys::RelationGetReplicaIndex(self.0) != pg_sys::InvalidOid)
        }
    }

    /// How many blocks it has on disk.
    pub(crate) fn blocks(&self) -> u32 {
        // SAFETY: open; a table.
        unsafe { pg_sys::RelationGetNumberOfBlocksInFork(self.0, pg_sys::ForkNumber::MAIN_FORKNUM) }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // After an error the resource owner has closed it or will.
        // SAFETY: opened by `locked`; the lock stays.
        unsafe {
            if pg_sys::IsTransactionState() {
                pg_sys::table_close(self.0, pg_sys::NoLock.cast_signed());
            }
        }
    }
}

/// Whether DELETE has side effects, or the table is no heap: it fires a trigger
/// ([`has_delete_triggers`]), or there are rules of any kind.
///
/// # Safety
/// `relation` is open.
pub(crate) unsafe fn deletion_concerns_others(relation: pg_sys::Relation) -> bool {
    // SAFETY: as required of the caller.
    unsafe {
        let class = (*relation).rd_rel;
        (*class).relam != pg_sys::HEAP_TABLE_AM_OID
            || (*class).relhasrules
            || has_delete_triggers(relation)
    }
}

/// Whether a DELETE fires a trigger, including those of foreign keys that reference the table,
/// and disabled ones.
///
/// # Safety
/// `relation` is open.
pub(crate) unsafe fn has_delete_triggers(relation: pg_sys::Relation) -> bool {
    // SAFETY: as required of the caller; the description belongs to the relation.
    unsafe {
        let Some(triggers) = (*relation).trigdesc.as_ref() else {
            return false;
        };
        triggers.trig_delete_before_row
            || triggers.trig_delete_after_row
            || triggers.trig_delete_instead_row
            || triggers.trig_delete_before_statement
            || triggers.trig_delete_after_statement
            || triggers.trig_delete_old_table
    }
}

/// Copies the values into the current memory context; null for none.
pub(crate) fn palloc_slice<T: Copy>(values: &[T]) -> *mut T {
    if values.is_empty() {
        return core::ptr::null_mut();
    }
    // SAFETY: allocates as much as is copied; palloc aligns for any type.
    unsafe {
        let copy = pg_sys::palloc(size_of_val(values)).cast::<T>();
        copy.copy_from_nonoverlapping(values.as_ptr(), values.len());
        copy
    }
}

/// `index_beginscan` for `nkeys` keys, the same in all versions.
///
/// # Safety
/// Table and index are open and locked; the snapshot outlives the scan.
pub(crate) unsafe fn begin_index_scan(
    table: pg_sys::Relation,
    index: pg_sys::Relation,
    snapshot: pg_sys::Snapshot,
    nkeys: i32,
) -> pg_sys::IndexScanDesc {
    // SAFETY: as required of the caller.
    unsafe {
        #[cfg(not(feature = "pg18"))]
        return pg_sys::index_beginscan(table, index, snapshot, nkeys, 0);
        #[cfg(feature = "pg18")]
        return pg_sys::index_beginscan(table, index, snapshot, core::ptr::null_mut(), nkeys, 0);
    }
}

/// The table as the target of a statement, in the current memory context.
///
/// # Safety
/// `table` is open and locked as long as the target is used.
pub(crate) unsafe fn target(table: pg_sys::Relation) -> *mut pg_sys::ResultRelInfo {
    let target = palloc_slice(&[pg_sys::ResultRelInfo::default()]);
    // SAFETY: as required of the caller; there is no range table.
    unsafe { pg_sys::InitResultRelInfo(target, table, 0, core::ptr::null_mut(), 0) };
    target
}

/// What an execution without a plan needs to check changed rows again.
///
/// # Safety
/// In the estate's memory context; `EvalPlanQualEnd` comes before it is freed.
pub(crate) unsafe fn recheck(estate: *mut pg_sys::EState) -> *mut pg_sys::EPQState {
    let (recheck, none) = (
        palloc_slice(&[pg_sys::EPQState::default()]),
        core::ptr::null_mut(),
    );
    // SAFETY: as required of the caller.
    unsafe {
        #[cfg(feature = "pg15")]
        pg_sys::EvalPlanQualInit(recheck, estate, none, core::ptr::null_mut(), -1);
        #[cfg(not(feature = "pg15"))]
        {
            let (marks, results) = (core::ptr::null_mut(), core::ptr::null_mut());
            pg_sys::EvalPlanQualInit(recheck, estate, none, marks, -1, results);
        }
    }
    recheck
}

/// Frees an execution that has only fired triggers.
///
/// # Safety
/// It has no plan, and nothing is left to be fired.
pub(crate) unsafe fn free_execution(estate: *mut pg_sys::EState) {
    // SAFETY: as required of the caller.
    unsafe {
        pg_sys::ExecCloseResultRelations(estate);
        pg_sys::ExecResetTupleTable((*estate).es_tupleTable, false);
        pg_sys::FreeExecutorState(estate);
    }
}

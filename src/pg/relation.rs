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

    /// Whether it is stored as a heap.
    pub(crate) fn is_heap(&self) -> bool {
        // SAFETY: open.
        unsafe { (*(*self.0).rd_rel).relam == pg_sys::HEAP_TABLE_AM_OID }
    }

    /// Whether it has rules of any kind.
    pub(crate) fn has_rules(&self) -> bool {
        // SAFETY: open.
        unsafe { (*(*self.0).rd_rel).relhasrules }
    }

    /// Whether a DELETE fires a trigger, those of foreign keys that reference
    /// the table included, disabled ones too.
    pub(crate) fn has_delete_triggers(&self) -> bool {
        // SAFETY: open; the description belongs to the relation.
        let Some(triggers) = (unsafe { (*self.0).trigdesc.as_ref() }) else {
            return false;
        };
        triggers.trig_delete_before_row
            || triggers.trig_delete_after_row
            || triggers.trig_delete_instead_row
            || triggers.trig_delete_before_statement
            || triggers.trig_delete_after_statement
            || triggers.trig_delete_old_table
    }

    /// Raises the error that a DELETE would, on a table that is published
    /// without a replica identity.
    pub(crate) fn check_replica_identity(&self) {
        // SAFETY: open and locked.
        unsafe { pg_sys::CheckCmdReplicaIdentity(self.0, pg_sys::CmdType::CMD_DELETE) };
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

//! An open relation.

use super::table::Table;
use pgrx::pg_sys;

/// A relation that the transaction has locked, open until dropped.
pub(crate) struct OpenRelation(pg_sys::Relation);

impl OpenRelation {
    /// Opens it; the caller holds a lock.
    pub(crate) fn locked(relid: pg_sys::Oid) -> Self {
        // SAFETY: locked by the caller, so it cannot vanish; raises if it has.
        Self(unsafe { pg_sys::table_open(relid, pg_sys::NoLock.cast_signed()) })
    }

    pub(crate) fn oid(&self) -> pg_sys::Oid {
        // SAFETY: the relation is open until the value is dropped.
        unsafe { (*self.0).rd_id }
    }

    pub(crate) fn table(&self) -> Table<'_> {
        // SAFETY: the relation is open until the value is dropped, and the transaction has locked it.
        unsafe { Table::of(self.0) }
    }

    /// Whether DELETE has side effects, or the table is no heap: it fires a trigger
    /// ([`Triggers::concern_delete`](super::firing::Triggers::concern_delete)), or there are rules of any kind.
    pub(crate) fn deletion_concerns_others(&self) -> bool {
        !self.is_plain_heap() || self.table().triggers().concern_delete()
    }

    /// Whether DELETE has no side effects but queued triggers
    /// ([`Triggers::delete_only_queues`](super::firing::Triggers::delete_only_queues)).
    pub(crate) fn deletion_only_queues_triggers(&self) -> bool {
        self.is_plain_heap() && self.table().triggers().delete_only_queues()
    }

    /// Whether its access method is PostgreSQL's own.
    pub(crate) fn is_heap(&self) -> bool {
        // SAFETY: the relation is open until the value is dropped.
        unsafe { (*(*self.0).rd_rel).relam == pg_sys::HEAP_TABLE_AM_OID }
    }

    /// A heap without rules of any kind.
    fn is_plain_heap(&self) -> bool {
        // SAFETY: the relation is open until the value is dropped.
        self.is_heap() && unsafe { (*self.0).rd_rules.is_null() }
    }

    /// Raises the error that a DELETE would on a table that is published without a replica
    /// identity.
    pub(crate) fn check_replica_identity(&self) {
        // SAFETY: the relation is open until the value is dropped, and the transaction has locked it.
        unsafe { pg_sys::CheckCmdReplicaIdentity(self.0, pg_sys::CmdType::CMD_DELETE) };
    }

    /// Whether a deletion passes [`Self::check_replica_identity`].
    pub(crate) fn passes_replica_identity_check(&self) -> bool {
        let mut published = pg_sys::PublicationDesc::default();
        // SAFETY: the relation is open until the value is dropped, and the transaction has locked it.
        unsafe {
            pg_sys::RelationBuildPublicationDesc(self.0, &mut published);
            #[cfg(since18)]
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
        // SAFETY: the relation is open until the value is dropped, and is a table: it has storage.
        unsafe { pg_sys::RelationGetNumberOfBlocksInFork(self.0, pg_sys::ForkNumber::MAIN_FORKNUM) }
    }
}

impl Drop for OpenRelation {
    fn drop(&mut self) {
        // After an error the resource owner has closed it or will.
        // SAFETY: `locked` has opened it once; closing it with NoLock keeps the transaction's lock.
        unsafe {
            if pg_sys::IsTransactionState() {
                pg_sys::table_close(self.0, pg_sys::NoLock.cast_signed());
            }
        }
    }
}

/// Whether the current transaction has created the table, which it has locked.
pub(crate) fn is_new(relid: pg_sys::Oid) -> bool {
    let table = OpenRelation::locked(relid);
    // SAFETY: the relation is open until the value is dropped.
    unsafe { (*table.0).rd_createSubid != 0 }
}

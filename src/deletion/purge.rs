//! Deleting what is expired in a session's own transaction, as the tables' owners.

use super::{batch, piecemeal};
use crate::error::Result;
use crate::pg::gate::{self, Visit};
use crate::pg::{catalog, locks};
use pgrx::pg_sys;

/// The table, its partitions and its heirs, each locked.
pub(crate) fn lock_tree(relid: pg_sys::Oid, mode: u32) -> Vec<pg_sys::Oid> {
    let tables = catalog::all_inheritors(relid);
    tables
        .iter()
        .for_each(|&table| locks::relation(table, mode));
    tables
}

/// Deletes the expired rows of one table, by the policy that is in force for
/// itself: an heir may have another parent that rules it. The caller holds ROW
/// EXCLUSIVE or more.
pub(crate) fn delete_from(relid: pg_sys::Oid) -> Result<u64> {
    let purged = as_owner(relid, |visit| batch::delete_all(visit, relid)).transpose()?;
    Ok(purged.map_or(0, |purged| purged.rows))
}

/// Whether a row of the table is expired and still there.
pub(crate) fn has_expired(relid: pg_sys::Oid) -> bool {
    as_owner(relid, |visit| piecemeal::has_expired(visit, relid)).unwrap_or(false)
}

/// Triggers of a table, and functions in its indexes, run as its owner, whoever of
/// the owning role asked. `None`: rows are not stored there.
pub(crate) fn as_owner<T>(relid: pg_sys::Oid, work: impl FnOnce(&Visit) -> T) -> Option<T> {
    let class = catalog::class(relid)?;
    (class.relkind == pg_sys::RELKIND_RELATION).then(|| gate::visit(class.owner, work))
}

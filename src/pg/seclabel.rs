//! Security labels of the provider `ttl`.

use super::{catalog, locks};
use crate::reaper::writes;
use pgrx::pg_sys;
use std::ffi::{CStr, CString};

/// The label provider's name.
pub(crate) const PROVIDER: &CStr = c"ttl";

fn table_address(relid: pg_sys::Oid) -> pg_sys::ObjectAddress {
    pg_sys::ObjectAddress {
        classId: pg_sys::RelationRelationId,
        objectId: relid,
        objectSubId: 0,
    }
}

/// The table's label.
pub(crate) fn get(relid: pg_sys::Oid) -> Option<String> {
    let address = table_address(relid);
    // SAFETY: a catalog look-up within a transaction; the label is a palloc'd C string or null.
    unsafe {
        let label = pg_sys::GetSecurityLabel(&address, PROVIDER.as_ptr());
        (!label.is_null()).then(|| CStr::from_ptr(label).to_string_lossy().into_owned())
    }
}

/// Before a label changes: waits for deletions by the present one, and tells all
/// sessions and workers at commit.
pub(crate) fn about_to_change(relid: pg_sys::Oid) {
    locks::lock_policy_for_change(relid);
    writes::note_policy_change();
    invalidate(relid);
}

/// Stores the label (`None` removes it), tells all sessions, and makes the
/// change visible to the rest of this transaction. The caller holds a lock on
/// the table and has checked that the current user may do this.
pub(crate) fn set(relid: pg_sys::Oid, label: Option<&str>) {
    about_to_change(relid);
    let address = table_address(relid);
    let label = label.and_then(|text| CString::new(text).ok());
    let pointer = label
        .as_ref()
        .map_or(core::ptr::null(), |text| text.as_ptr());
    // SAFETY: the strings outlive the call.
    unsafe {
        pg_sys::SetSecurityLabel(&address, PROVIDER.as_ptr(), pointer);
    }
    // SAFETY: within a transaction.
    unsafe { pg_sys::CommandCounterIncrement() };
}

/// Makes every session forget what it knows of the table, of all that inherit
/// from it and all that it inherits from, and replan (C8). Takes effect at
/// commit, for this session at the next command.
pub(crate) fn invalidate(relid: pg_sys::Oid) {
    for related in catalog::all_inheritors(relid)
        .into_iter()
        .chain(catalog::ancestors(relid))
    {
        if catalog::class(related).is_some() {
            // SAFETY: the relation exists; only queues a message.
            unsafe { pg_sys::CacheInvalidateRelcacheByRelid(related) };
        }
    }
}

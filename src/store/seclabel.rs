//! Security labels of the provider `ttl`.

use super::{policy_lock, written};
use crate::pg::rows::{Catalog, Key, Row};
use crate::pg::{catalog, encoding};
use pgrx::pg_sys;
use std::ffi::CStr;

/// The label provider's name.
pub(crate) const PROVIDER: &CStr = c"ttl";

fn table_address(relid: pg_sys::Oid) -> pg_sys::ObjectAddress {
    pg_sys::ObjectAddress {
        classId: pg_sys::RelationRelationId,
        objectId: relid,
        objectSubId: 0,
    }
}

/// A table's label, if it is not too large to read.
#[derive(Debug)]
pub(crate) enum Label {
    Text(String),
    /// The size in bytes of a label that is not read.
    TooLarge(usize),
}

/// The table's label, if it is no larger than this.
pub(crate) fn get(relid: pg_sys::Oid, largest: usize) -> Option<Label> {
    let mut found = None;
    scan(Some(relid), &mut |_, label| {
        // SAFETY: called with the label's value.
        found = Some(unsafe { read(label, largest) });
    });
    found
}

/// Calls `see` with the label of each table of the database, unless it is larger than this.
pub(crate) fn each(largest: usize, see: &mut dyn FnMut(pg_sys::Oid, &str)) {
    scan(None, &mut |relid, label| {
        // SAFETY: called with the label's value.
        if let Label::Text(text) = unsafe { read(label, largest) } {
            see(relid, &text);
        }
    });
}

/// # Safety
/// `label` is a text. Its size is checked first: it can be large.
unsafe fn read(label: pg_sys::Datum, largest: usize) -> Label {
    // SAFETY: as required of the caller; the size counts the header's four bytes.
    unsafe {
        match pg_sys::toast_raw_datum_size(label).saturating_sub(4) {
            size if size > largest => Label::TooLarge(size),
            _ => Label::Text(encoding::from_datum(label)),
        }
    }
}

// SAFETY: pg_seclabel, by its index on object and class.
const LABELS_OF_ONE: Catalog<pg_sys::FormData_pg_seclabel> = unsafe {
    let index = pg_sys::Oid::from_u32(pg_sys::SecLabelObjectIndexId);
    Catalog::new(pg_sys::SecLabelRelationId, Some(index))
};
// SAFETY: pg_seclabel, all of it.
const LABELS: Catalog<pg_sys::FormData_pg_seclabel> =
    unsafe { Catalog::new(pg_sys::SecLabelRelationId, None) };

/// Calls `see` with the labels of all tables, or of one.
fn scan(relid: Option<pg_sys::Oid>, see: &mut dyn FnMut(pg_sys::Oid, pg_sys::Datum)) {
    let tables = pg_sys::Anum_pg_seclabel_classoid as i16;
    let tables = (tables, Key::Oid(pg_sys::RelationRelationId));
    let mut see = |row: &Row<'_, pg_sys::FormData_pg_seclabel>| {
        let provider = row.value(pg_sys::Anum_pg_seclabel_provider);
        // SAFETY: a text.
        let is_ours = provider.is_some_and(|provider| unsafe { is_ours(provider) });
        if row.objsubid == 0
            && is_ours
            && let Some(label) = row.value(pg_sys::Anum_pg_seclabel_label)
        {
            see(row.objoid, label);
        }
        false
    };
    match relid {
        Some(relid) => {
            let table = pg_sys::Anum_pg_seclabel_objoid as i16;
            LABELS_OF_ONE.scan(&[(table, Key::Oid(relid)), tables], &mut see);
        }
        None => LABELS.scan(&[tables], &mut see),
    }
}

/// # Safety
/// A text.
unsafe fn is_ours(provider: pg_sys::Datum) -> bool {
    // SAFETY: as required of the caller; what was allocated is freed.
    unsafe {
        let name = pg_sys::text_to_cstring(provider.cast_mut_ptr());
        let is_ours = CStr::from_ptr(name) == PROVIDER;
        pg_sys::pfree(name.cast());
        is_ours
    }
}

/// Before a label changes: waits for batches under the present policy, and tells all sessions
/// and workers at commit.
pub(crate) fn about_to_change(relid: pg_sys::Oid) {
    policy_lock::lock_policy_for_change(relid);
    written::note_policy_change();
    invalidate(relid);
}

/// Stores the label (`None` removes it), tells all sessions, and makes the change visible to the
/// rest of the transaction. The caller holds a lock on the table and has checked privileges.
pub(crate) fn set(relid: pg_sys::Oid, label: Option<&str>) {
    about_to_change(relid);
    let address = table_address(relid);
    let label = label.and_then(encoding::to_server);
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

/// Makes every session forget the table, its descendants and its ancestors, and plan again (C8).
/// Takes effect at commit, in this session at the next command.
pub(crate) fn invalidate(relid: pg_sys::Oid) {
    let below = catalog::all_inheritors(relid).into_iter();
    for related in below.chain(catalog::ancestors(relid)) {
        if catalog::class(related).is_some() {
            // SAFETY: the relation exists; only queues a message.
            unsafe { pg_sys::CacheInvalidateRelcacheByRelid(related) };
        }
    }
}

//! Security labels of the provider `ttl`.

use super::{policy_lock, written};
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

/// Calls `see` with the labels of all tables, or of one.
fn scan(relid: Option<pg_sys::Oid>, see: &mut dyn FnMut(pg_sys::Oid, pg_sys::Datum)) {
    let oid = |value: pg_sys::Oid| pg_sys::Datum::from(value);
    let keys = [
        (pg_sys::Anum_pg_seclabel_objoid, relid.map(oid)),
        (
            pg_sys::Anum_pg_seclabel_classoid,
            Some(oid(pg_sys::RelationRelationId)),
        ),
    ];
    // SAFETY: a systable scan over a locked catalog, closed before return; the keys'
    // function is oideq, of which F_OIDEQ is the OID; a tuple is read while the scan stands
    // on it. Its columns are never NULL.
    unsafe {
        let share = pg_sys::AccessShareLock.cast_signed();
        let catalog = pg_sys::table_open(pg_sys::SecLabelRelationId, share);
        let columns = (*catalog).rd_att;
        let mut keys: Vec<pg_sys::ScanKeyData> = keys
            .into_iter()
            .filter_map(|(column, value)| {
                let mut key = pg_sys::ScanKeyData::default();
                let equal = pg_sys::BTEqualStrategyNumber as u16;
                let function = pg_sys::Oid::from(pg_sys::F_OIDEQ);
                pg_sys::ScanKeyInit(&mut key, column as i16, equal, function, value?);
                Some(key)
            })
            .collect();
        let index = pg_sys::Oid::from(pg_sys::SecLabelObjectIndexId);
        let scan = pg_sys::systable_beginscan(
            catalog,
            index,
            relid.is_some(),
            core::ptr::null_mut(),
            keys.len() as i32,
            keys.as_mut_ptr(),
        );
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            pgrx::check_for_interrupts!();
            let form = &*pg_sys::GETSTRUCT(tuple).cast::<pg_sys::FormData_pg_seclabel>();
            let value = |column: u32| {
                let mut is_null = false;
                pg_sys::heap_getattr(tuple, column as i32, columns, &mut is_null)
            };
            let provider = value(pg_sys::Anum_pg_seclabel_provider);
            if form.objsubid == 0 && is_ours(provider) {
                see(form.objoid, value(pg_sys::Anum_pg_seclabel_label));
            }
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(catalog, share);
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

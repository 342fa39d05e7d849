//! Security labels of tables, and of their row types.

use super::xact;
use crate::pg::abi::encoding;
use crate::pg::catalog::rows::{Catalog, CatalogRow, KeyDatum};
use crate::pg::catalog::syntax::Node;
use core::ffi::c_char;
use pgrx::pg_sys::{self, ObjectAddress, PlannedStmt};
use pgrx::prelude::*;
use std::ffi::CStr;
use std::sync::OnceLock;

// SAFETY: pg_seclabel, by its index on object and class.
const LABELS_OF_ONE: Catalog<pg_sys::FormData_pg_seclabel> = unsafe {
    let index = pg_sys::Oid::from_u32(pg_sys::SecLabelObjectIndexId);
    Catalog::new(pg_sys::SecLabelRelationId, Some(index))
};
// SAFETY: rows of pg_seclabel begin with this struct; the scan uses no index.
const LABELS: Catalog<pg_sys::FormData_pg_seclabel> =
    unsafe { Catalog::new(pg_sys::SecLabelRelationId, None) };

/// What a label is on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LabelledObject {
    Table,
    /// The row type of a table. pg_dump dumps it with the table, and without its labels.
    RowType,
}

impl LabelledObject {
    fn class(self) -> pg_sys::Oid {
        match self {
            Self::Table => pg_sys::RelationRelationId,
            Self::RowType => pg_sys::TypeRelationId,
        }
    }
}

/// Calls `see` with the provider's labels of one object of a kind, or of all; for a label above the
/// limit, with its size in bytes.
pub(crate) fn each(
    provider: &CStr,
    kind: LabelledObject,
    object: Option<pg_sys::Oid>,
    largest: usize,
    see: &mut dyn FnMut(pg_sys::Oid, Result<String, usize>),
) {
    let class = pg_sys::Anum_pg_seclabel_classoid as i16;
    let class = (class, KeyDatum::Oid(kind.class()));
    let mut see = |row: &CatalogRow<'_, pg_sys::FormData_pg_seclabel>| {
        let of = row.value(pg_sys::Anum_pg_seclabel_provider);
        // SAFETY: provider and label are of type text, and pg_seclabel has no NULL in them.
        unsafe {
            if row.objsubid == 0
                && of.is_some_and(|of| encoding::from_datum(of).as_bytes() == provider.to_bytes())
                && let Some(label) = row.value(pg_sys::Anum_pg_seclabel_label)
            {
                see(row.objoid, read(label, largest));
            }
        }
        false
    };
    match object {
        Some(object) => {
            let column = pg_sys::Anum_pg_seclabel_objoid as i16;
            LABELS_OF_ONE.scan(&[(column, KeyDatum::Oid(object)), class], &mut see);
        }
        None => LABELS.scan(&[class], &mut see),
    }
}

/// # Safety
/// The datum is a text. Its size is checked before it is read, as it can be large.
unsafe fn read(label: pg_sys::Datum, largest: usize) -> Result<String, usize> {
    // SAFETY: as required of the caller; the size counts the header's four bytes.
    unsafe {
        match pg_sys::toast_raw_datum_size(label).saturating_sub(4) {
            size if size > largest => Err(size),
            _ => Ok(encoding::from_datum(label)),
        }
    }
}

/// Stores or removes the object's label, visible to the rest of the transaction.
pub(crate) fn set(
    provider: &CStr,
    kind: LabelledObject,
    object: pg_sys::Oid,
    label: Option<&CStr>,
) {
    let address = ObjectAddress {
        classId: kind.class(),
        objectId: object,
        objectSubId: 0,
    };
    let label = label.map_or(core::ptr::null(), CStr::as_ptr);
    // SAFETY: the function copies what it stores; the strings outlive the call.
    unsafe { pg_sys::SetSecurityLabel(&address, provider.as_ptr(), label) };
    xact::next_command();
}

/// Called before a statement stores a label (`None`: removes it). PostgreSQL has locked the object
/// and checked its owner. Raises an error to reject the label.
type Check = fn(&ObjectAddress, Option<&str>);

static CHECK: OnceLock<Check> = OnceLock::new();

/// Registers this library's label provider; called once, at load.
pub(crate) fn register(provider: &'static CStr, check: Check) {
    CHECK.get_or_init(|| check);
    // SAFETY: the callback lives as long as the library.
    unsafe { pg_sys::register_label_provider(provider.as_ptr(), Some(relabel)) };
}

#[pg_guard]
unsafe extern "C-unwind" fn relabel(object: *const ObjectAddress, label: *const c_char) {
    if let Some(check) = CHECK.get() {
        // SAFETY: PostgreSQL passes a C string or null.
        let label = (!label.is_null()).then(|| encoding::given(unsafe { CStr::from_ptr(label) }));
        // SAFETY: PostgreSQL passes the address of the object that it has looked up.
        unsafe { check(&*object, label.as_deref()) };
    }
}

/// A copy of a SECURITY LABEL statement, with another label.
pub(crate) fn with_label(statement: Node<'_, PlannedStmt>, label: &CStr) -> *mut PlannedStmt {
    // SAFETY: this function has the only reference to the copy.
    unsafe {
        let copy = pg_sys::copyObjectImpl(statement.as_ptr().cast()).cast::<PlannedStmt>();
        let stmt = Node::new((*copy).utilityStmt).and_then(Node::cast::<pg_sys::SecLabelStmt>);
        if let Some(stmt) = stmt {
            (*stmt.as_ptr()).label = pg_sys::pstrdup(label.as_ptr());
        }
        copy
    }
}

//! Rows that this transaction has made refer to an expired row.
//!
//! With the expired row, ON DELETE CASCADE, SET NULL or SET DEFAULT delete or change the rows
//! that refer to it. Those that this transaction has inserted, or made refer to it, are meant
//! for a new row with that key: no statement could see the expired one (a deferred constraint, or an
//! earlier part of the same statement). They must not vanish silently, whether the extension
//! deletes the expired row or a foreign key's cascade does ([`super::unneeded_row`]). Without it
//! they stay, and their own check finds the new row or none.

use super::same_xact_rows;
use crate::deletion::left_to_owner;
use crate::error::Error;
use crate::pg::abi::encoding;
use crate::pg::abi::variable::ByOid;
use crate::pg::catalog::foreign_key::{self, ForeignKey};
use crate::pg::catalog::{self, invalidation};
use crate::pg::exec::query::{self, Sql};
use crate::pg::exec::table::{Slot, Table};
use crate::pg::server::activity;
use crate::pg::session::gate::{self, GateVisit};
use crate::visibility::referential;
use pgrx::prelude::*;
use std::rc::Rc;

/// The actions of foreign keys that delete or change what refers to a deleted row.
const ACTIONS: [u32; 3] = [
    pg_sys::F_RI_FKEY_CASCADE_DEL,
    pg_sys::F_RI_FKEY_SETNULL_DEL,
    pg_sys::F_RI_FKEY_SETDEFAULT_DEL,
];

/// Whether a foreign key deletes or changes the rows that refer to a deleted one.
pub(super) fn has_actions(table: Table<'_>) -> bool {
    table.triggers().call_one_of(&ACTIONS)
}

/// The foreign keys with such an action, by the referenced table.
static REFERENCES: ByOid<Rc<[Reference]>> = ByOid::empty();

/// Forgets the foreign keys: some relation has changed, perhaps a referencing one. Raises no
/// error.
pub(super) fn forget() {
    invalidation::forget(&REFERENCES, pg_sys::InvalidOid);
}

/// A foreign key with such an action.
struct Reference {
    constraint: pg_sys::Oid,
    key: ForeignKey,
}

/// Whether foreign keys with such an action refer to the table.
pub(super) fn has_references(relid: pg_sys::Oid) -> bool {
    !known_references(relid).is_empty()
}

/// Raises 23503 if this transaction has made a row refer to this expired one, by a foreign key
/// with such an action. `for_new_row`: the expired one makes room for a new row.
#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
pub(super) extern "C-unwind" fn refuse(row: Slot<'_>, for_new_row: bool) {
    // Raises errors before there is anything to drop.
    row.read_all();
    let relid = row.table().oid();
    for reference in known_references(relid).iter() {
        if refers(&reference.key, row) {
            let (from, to) = (
                catalog::qualified_name(reference.key.referencing),
                catalog::qualified_name(relid),
            );
            let (message, hint) = if for_new_row {
                (
                    format!("cannot put a new row of table {to} in the place of an expired one"),
                    "Insert the referenced row first, in a statement of its own.",
                )
            } else {
                (
                    format!("cannot delete an expired row of table {to}"),
                    "Have these rows refer to a row that is not expired, or delete them, first.",
                )
            };
            Error::new(PgSqlErrorCode::ERRCODE_FOREIGN_KEY_VIOLATION, message)
                .detail(format!(
                    "Rows of table {from} that this transaction has written refer to it, and foreign key \"{}\" would delete or change them.",
                    foreign_key::name(reference.constraint)
                ))
                .hint(hint)
                .raise();
        }
    }
}

/// The foreign keys with such an action that refer to the table, which the caller has open.
fn known_references(relid: pg_sys::Oid) -> Rc<[Reference]> {
    let look_up = || {
        let constraints = foreign_key::of_referenced(relid).into_iter();
        let references = constraints.filter_map(|constraint| {
            let key = foreign_key::get(constraint)?;
            let has_action = key.referenced == relid && [b'c', b'n', b'd'].contains(&key.on_delete);
            has_action.then_some(Reference { constraint, key })
        });
        references.collect()
    };
    invalidation::cached(&REFERENCES, relid, || true, look_up)
}

/// Whether this transaction has made a row refer to this one. Asked as the owner of the
/// referencing table, like PostgreSQL's own queries for foreign keys.
fn refers(foreign_key: &ForeignKey, row: Slot<'_>) -> bool {
    let table = foreign_key.referencing;
    if !may_have_written(table) {
        return false;
    }
    let Some(class) = catalog::class(table) else {
        return false;
    };
    let mut key = Vec::new();
    for attno in foreign_key.pairs.iter().map(|pair| pair.referenced) {
        let (Some(column), Some(value)) = (row.table().column(attno), row.value(attno)) else {
            return false;
        };
        key.push((column.atttypid, Some(value)));
    }
    let is_written_here = "ttl_internal.written_here(tableoid, ctid)";
    let query = encoding::from_bytes(referential::search(foreign_key, is_written_here));
    let named = [table];
    let query = Sql::naming(&named, &query);
    let look = |visit: &GateVisit| {
        same_xact_rows::asking_about(table, || {
            // By a new snapshot, which sees what this command has written so far.
            if query::first_value(visit, query, &key).is_none() {
                return false;
            }
            // Rows that have referred to it since before the transaction go with it, whatever
            // else has changed in them.
            same_xact_rows::leave_out_versions_of(|| {
                query::read_as_before(visit, query, &key);
            });
            query::first_value(visit, query, &key).is_some()
        })
    };
    left_to_owner::without_code(table, class.owner, || gate::visit(class.owner, look))
}

/// Whether this transaction can have written to the table or its partitions. Cheap, and mostly
/// false.
fn may_have_written(relid: pg_sys::Oid) -> bool {
    let tables = catalog::all_inheritors(relid);
    tables.into_iter().any(activity::may_have_written)
}

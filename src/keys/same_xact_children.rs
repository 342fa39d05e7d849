//! Rows that this transaction has made refer to an expired row.
//!
//! With the expired row, ON DELETE CASCADE, SET NULL or SET DEFAULT delete or change the rows
//! that refer to it. Those that this transaction has inserted, or made refer to it, are meant
//! for a new row with that key: no statement could see the expired one (a deferred constraint, or an
//! earlier part of the same statement). They must not vanish silently, whether the extension
//! deletes the expired row or a foreign key's cascade does ([`super::unneeded_row`]). Without it
//! they stay, and their own check finds the new row or none.

use super::{plan, same_xact_rows};
use crate::deletion::left_to_owner;
use crate::error::{Error, Result};
use crate::pg::abi::report::or_raise;
use crate::pg::abi::values::Text;
use crate::pg::catalog;
use crate::pg::exec::query;
use crate::pg::exec::table::{Slot, Table};
use crate::pg::server::activity;
use crate::pg::session::gate;
use pgrx::pg_sys;
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, Spi};
use std::cell::RefCell;
use std::collections::HashMap;
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

thread_local! {
    /// The foreign keys with such an action, by the referenced table.
    static REFERENCES: RefCell<HashMap<pg_sys::Oid, Rc<[Reference]>>> = RefCell::new(HashMap::new());
}

/// Forgets the foreign keys: some relation has changed, perhaps a referencing one. Raises no
/// error.
pub(super) fn forget() {
    REFERENCES.with_borrow_mut(HashMap::clear);
}

/// A foreign key with such an action.
struct Reference {
    name: String,
    table: pg_sys::Oid,
    /// The condition "refers to the row with the key `$1`, …".
    condition: String,
    /// The columns of the key in the referenced table.
    columns: Vec<i16>,
}

/// Whether foreign keys with such an action refer to the table.
pub(super) fn has_references(relid: pg_sys::Oid) -> bool {
    !or_raise(known_references(relid)).is_empty()
}

/// Raises 23503 if this transaction has made a row refer to this expired one, by a foreign key
/// with such an action. `for_new_row`: the expired one makes room for a new row.
#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
pub(super) extern "C-unwind" fn refuse(row: Slot<'_>, for_new_row: bool) {
    // Raises errors before there is anything to drop.
    row.read_all();
    let relid = row.table().oid();
    for reference in or_raise(known_references(relid)).iter() {
        if or_raise(refers(reference, row)) {
            let (from, to) = (
                catalog::qualified_name(reference.table),
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
                    reference.name
                ))
                .hint(hint)
                .raise();
        }
    }
}

/// [`references`], cached.
fn known_references(relid: pg_sys::Oid) -> Result<Rc<[Reference]>> {
    if let Some(known) = REFERENCES.with_borrow(|all| all.get(&relid).cloned()) {
        return Ok(known);
    }
    let before = plan::generation();
    let found: Rc<[Reference]> = references(relid)?.into();
    if plan::generation() == before {
        REFERENCES.with_borrow_mut(|all| all.insert(relid, Rc::clone(&found)));
    }
    Ok(found)
}

fn references(relid: pg_sys::Oid) -> Result<Vec<Reference>> {
    let query = format!(
        "SELECT c.conname::pg_catalog.text, c.conrelid, c.confkey, pg_catalog.string_agg( \
             '$' OPERATOR(pg_catalog.||) k.n::pg_catalog.text OPERATOR(pg_catalog.||) ' OPERATOR(' \
             OPERATOR(pg_catalog.||) pg_catalog.quote_ident(s.nspname) OPERATOR(pg_catalog.||) '.' \
             OPERATOR(pg_catalog.||) o.oprname::pg_catalog.text OPERATOR(pg_catalog.||) ') x.' \
             OPERATOR(pg_catalog.||) pg_catalog.quote_ident(a.attname), ' AND ') \
         FROM pg_catalog.pg_constraint c \
         CROSS JOIN LATERAL ROWS FROM (pg_catalog.unnest(c.conkey), pg_catalog.unnest(c.conpfeqop)) WITH ORDINALITY AS k (attno, op, n) \
         JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) c.conrelid \
              AND a.attnum OPERATOR(pg_catalog.=) k.attno \
         JOIN pg_catalog.pg_operator o ON o.oid OPERATOR(pg_catalog.=) k.op \
         JOIN pg_catalog.pg_namespace s ON s.oid OPERATOR(pg_catalog.=) o.oprnamespace \
         WHERE c.contype OPERATOR(pg_catalog.=) 'f' AND c.confrelid OPERATOR(pg_catalog.=) {} \
           AND c.confdeltype OPERATOR(pg_catalog.=) ANY (ARRAY['c', 'n', 'd']::pg_catalog.\"char\"[]) \
         GROUP BY c.oid, c.conname, c.conrelid, c.confkey",
        relid.to_u32()
    );
    Spi::connect(|client| {
        let mut found = Vec::new();
        for row in client.select(&query, None, &[])? {
            let (name, table) = (row.get::<Text>(1)?, row.get::<pg_sys::Oid>(2)?);
            let (columns, condition) = (row.get::<Vec<i16>>(3)?, row.get::<Text>(4)?);
            if let (Some(name), Some(table), Some(columns), Some(condition)) =
                (name, table, columns, condition)
            {
                found.push(Reference {
                    name: name.0,
                    table,
                    condition: condition.0,
                    columns,
                });
            }
        }
        Ok(found)
    })
}

/// Whether this transaction has made a row refer to this one. Asked as the owner of the
/// referencing table, like PostgreSQL's own queries for foreign keys.
fn refers(reference: &Reference, row: Slot<'_>) -> Result<bool> {
    if !may_have_written(reference.table) {
        return Ok(false);
    }
    let Some(class) = catalog::class(reference.table) else {
        return Ok(false);
    };
    let mut key = Vec::new();
    for &attno in &reference.columns {
        let (Some(column), Some(value)) = (row.table().column(attno), row.value(attno)) else {
            return Ok(false);
        };
        key.push((column.atttypid, Some(value)));
    }
    let only = if class.relkind == pg_sys::RELKIND_PARTITIONED_TABLE {
        ""
    } else {
        "ONLY "
    };
    let query = format!(
        "SELECT EXISTS (SELECT FROM {only}{} AS x WHERE {} AND ttl_internal.written_here(x.tableoid, x.ctid))",
        catalog::qualified_name(reference.table),
        reference.condition
    );
    let is_true = |found: Option<pg_sys::Datum>| found.is_some_and(|found| found.value() != 0);
    left_to_owner::refuse_planning(reference.table, class.owner);
    Ok(gate::visit(class.owner, |visit| {
        same_xact_rows::asking_about(reference.table, |question| {
            // By a new snapshot, which sees what this command has written so far.
            if !is_true(query::first_value(visit, &query, &key)) {
                return false;
            }
            // Rows that have referred to it since before the transaction go with it, whatever
            // else has changed in them.
            question.leave_out_versions_of(|| {
                query::read_as_before(visit, &query, &key);
            });
            is_true(query::first_value(visit, &query, &key))
        })
    }))
}

/// Whether this transaction can have written to the table or its partitions. Cheap, and mostly
/// false.
fn may_have_written(relid: pg_sys::Oid) -> bool {
    let tables = catalog::all_inheritors(relid);
    tables.into_iter().any(activity::may_have_written)
}

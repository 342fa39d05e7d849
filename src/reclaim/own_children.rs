//! Rows that this very transaction has inserted, and that refer to an expired row.
//!
//! To make room, the expired row is deleted, and with it, by ON DELETE CASCADE, SET NULL
//! or SET DEFAULT, what refers to it. Rows of this transaction are meant for the new row
//! that comes in its place: they were inserted when nobody could see the expired one
//! (a deferred constraint, or an earlier part of the same statement). They must not go
//! with it silently.

use super::plan;
use crate::error::{Result, TtlError, or_raise};
use crate::pg::{catalog, fmgr, relation, session};
use pgrx::datum::DatumWithOid;
use pgrx::pg_sys::{self, TupleTableSlot};
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, Spi};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

fmgr::finfo_v1!(pg_finfo_ttl_inserted_here);

/// The actions of foreign keys that delete or change what refers to a deleted row.
const ACTIONS: [u32; 3] = [
    pg_sys::F_RI_FKEY_CASCADE_DEL,
    pg_sys::F_RI_FKEY_SETNULL_DEL,
    pg_sys::F_RI_FKEY_SETDEFAULT_DEL,
];

/// Whether a foreign key deletes or changes what refers to a row that is deleted.
///
/// # Safety
/// `table` is open.
pub(super) unsafe fn has_actions(table: pg_sys::Relation) -> bool {
    // SAFETY: as required of the caller: an array of that many triggers.
    unsafe {
        (*table).trigdesc.as_ref().is_some_and(|triggers| {
            (0..usize::try_from(triggers.numtriggers).unwrap_or(0))
                .any(|at| ACTIONS.contains(&(*triggers.triggers.add(at)).tgfoid.to_u32()))
        })
    }
}

thread_local! {
    /// The foreign keys with such an action, by the referenced table.
    static REFERENCES: RefCell<HashMap<pg_sys::Oid, Rc<[Reference]>>> = RefCell::new(HashMap::new());
}

/// Forgets what is known of foreign keys: some relation has changed, perhaps a
/// referencing one. Raises no error.
pub(super) fn forget() {
    REFERENCES.with_borrow_mut(HashMap::clear);
}

/// A foreign key with such an action.
struct Reference {
    name: String,
    table: pg_sys::Oid,
    /// The condition that the row with the key `$1`, … is referred to.
    condition: String,
    /// The columns of the key in the referenced table.
    columns: Vec<i16>,
}

/// Raises 23503 if a row that this transaction has inserted refers to the row in the
/// slot by a foreign key with such an action.
///
/// # Safety
/// The slot holds a row of the table, which is open and locked.
#[pg_guard]
pub(super) unsafe extern "C-unwind" fn refuse(table: pg_sys::Relation, slot: *mut TupleTableSlot) {
    // SAFETY: as required of the caller.
    let relid = unsafe { (*table).rd_id };
    for reference in or_raise(known_references(relid)).iter() {
        // SAFETY: as required of the caller.
        if or_raise(unsafe { refers(reference, relid, slot) }) {
            let (from, to) = (
                catalog::qualified_name(reference.table),
                catalog::qualified_name(relid),
            );
            let message =
                format!("cannot put a new row of table {to} in the place of an expired one");
            TtlError::new(PgSqlErrorCode::ERRCODE_FOREIGN_KEY_VIOLATION, message)
                .detail(format!(
                    "Rows of table {from} that this transaction has inserted refer to it, and foreign key \"{}\" would delete or change them.",
                    reference.name
                ))
                .hint("Insert the referenced row first, in a statement of its own.")
                .raise();
        }
    }
}

/// [`references`], read once for many rows.
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
        "SELECT c.conname::text, c.conrelid, c.confkey, pg_catalog.string_agg( \
             '$' OPERATOR(pg_catalog.||) k.n::text OPERATOR(pg_catalog.||) ' OPERATOR(' \
             OPERATOR(pg_catalog.||) pg_catalog.quote_ident(s.nspname) OPERATOR(pg_catalog.||) '.' \
             OPERATOR(pg_catalog.||) o.oprname::text OPERATOR(pg_catalog.||) ') x.' \
             OPERATOR(pg_catalog.||) pg_catalog.quote_ident(a.attname), ' AND ') \
         FROM pg_catalog.pg_constraint c \
         CROSS JOIN LATERAL ROWS FROM (pg_catalog.unnest(c.conkey), pg_catalog.unnest(c.conpfeqop)) WITH ORDINALITY AS k (attno, op, n) \
         JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) c.conrelid \
              AND a.attnum OPERATOR(pg_catalog.=) k.attno \
         JOIN pg_catalog.pg_operator o ON o.oid OPERATOR(pg_catalog.=) k.op \
         JOIN pg_catalog.pg_namespace s ON s.oid OPERATOR(pg_catalog.=) o.oprnamespace \
         WHERE c.contype OPERATOR(pg_catalog.=) 'f' AND c.confrelid OPERATOR(pg_catalog.=) {} \
           AND c.confdeltype OPERATOR(pg_catalog.=) ANY (ARRAY['c', 'n', 'd']::\"char\"[]) \
         GROUP BY c.oid, c.conname, c.conrelid, c.confkey",
        relid.to_u32()
    );
    Spi::connect(|client| {
        let mut found = Vec::new();
        for row in client.select(&query, None, &[])? {
            let (name, table) = (row.get::<String>(1)?, row.get::<pg_sys::Oid>(2)?);
            let (columns, condition) = (row.get::<Vec<i16>>(3)?, row.get::<String>(4)?);
            if let (Some(name), Some(table), Some(columns), Some(condition)) =
                (name, table, columns, condition)
            {
                found.push(Reference {
                    name,
                    table,
                    condition,
                    columns,
                });
            }
        }
        Ok(found)
    })
}

/// Whether a row that this transaction has inserted refers to the one in the slot. Asked
/// as the owner of the referring table, as PostgreSQL's own queries for foreign keys.
///
/// # Safety
/// The slot holds a row of the table `relid`.
unsafe fn refers(
    reference: &Reference,
    relid: pg_sys::Oid,
    slot: *mut TupleTableSlot,
) -> Result<bool> {
    let Some(class) = catalog::class(reference.table) else {
        return Ok(false);
    };
    let mut key = Vec::new();
    for &attno in &reference.columns {
        let mut isnull = false;
        // SAFETY: as required of the caller; the value has the column's type.
        unsafe {
            let value = pg_sys::slot_getattr(slot, i32::from(attno), &mut isnull);
            if isnull {
                return Ok(false);
            }
            key.push(DatumWithOid::new(value, pg_sys::get_atttype(relid, attno)));
        }
    }
    let only = if class.relkind == pg_sys::RELKIND_PARTITIONED_TABLE {
        ""
    } else {
        "ONLY "
    };
    let query = format!(
        "SELECT EXISTS (SELECT FROM {only}{} AS x WHERE {} AND ttl.inserted_here(x.tableoid, x.ctid))",
        catalog::qualified_name(reference.table),
        reference.condition
    );
    // Not read-only: with a snapshot of its own, which sees what this very command has
    // written so far. Functions in the owner's indexes may run while it is planned.
    let found = session::as_owner(class.owner, || {
        Spi::connect_mut(|client| {
            client
                .update(&query, Some(1), &key)?
                .first()
                .get_one::<bool>()
        })
    })?;
    Ok(found.unwrap_or(false))
}

/// `ttl.inserted_here(relation oid, place tid) RETURNS boolean`: whether the row at this
/// place was inserted, not updated, by the present transaction. False where there is
/// none, and for another kind of table.
///
/// # Safety
/// Called by PostgreSQL's function manager with two arguments.
#[pg_guard]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C-unwind" fn ttl_inserted_here(
    fcinfo: pg_sys::FunctionCallInfo,
) -> pg_sys::Datum {
    // SAFETY: as declared in SQL. STRICT.
    unsafe {
        let (Some(relid), Some(place)) = (fmgr::arg(fcinfo, 0), fmgr::arg(fcinfo, 1)) else {
            return pg_sys::Datum::from(false);
        };
        let relid = pg_sys::Oid::from(relid.value() as u32);
        let mut place = *place.cast_mut_ptr::<pg_sys::ItemPointerData>();
        pg_sys::Datum::from(relation::is_inserted_here(relid, &mut place))
    }
}

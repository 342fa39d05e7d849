//! The distributed transaction that the session takes part in.

use crate::pg::catalog::names;
use crate::pg::exec::composite;
use pgrx::pg_sys;

/// `ClanguageId` of pg_language.dat.
const C_LANGUAGE: pg_sys::Oid = pg_sys::Oid::from_u32(13);
/// The last column of `get_current_transaction_id()`.
const TRANSACTION_STAMP: i16 = 5;

/// When it began, by the clock of the node that coordinates it; `None` outside one.
pub(crate) fn begun_at() -> Option<i64> {
    let schema = pg_sys::Oid::from_u32(pg_sys::PG_CATALOG_NAMESPACE);
    let function = names::function(schema, c"get_current_transaction_id", &[], C_LANGUAGE)?;
    // SAFETY: Citus's function, which only superusers create: it returns such a row.
    let stamp = unsafe { composite::returned(function, TRANSACTION_STAMP) }?;
    Some(stamp.value() as i64)
}

//! DEFAULTs and generation expressions that call the extension, as they are stored: whatever settings say of how they
//! are shown.

use super::extension;
use crate::pg::catalog::{self, defaults, expressions};
use pgrx::pg_sys;

/// Whether the column has the DEFAULT `ttl.current_ts()`.
pub(crate) fn is_current_ts(relid: pg_sys::Oid, attno: i16) -> bool {
    extension::functions().is_some_and(|ttl| {
        let call = expressions::call(ttl.current_ts, pg_sys::TIMESTAMPTZOID, &[]);
        // SAFETY: `expressions::call` has made the expression in the current memory context.
        unsafe { defaults::is_stored(relid, attno, call) }
    })
}

/// Whether the column is generated as `ttl.document_ttl(document)`.
pub(crate) fn is_generated_from(relid: pg_sys::Oid, attno: i16, document: &str) -> bool {
    let document = catalog::attribute(relid, document);
    document
        .zip(extension::functions())
        .is_some_and(|(column, ttl)| {
            let column = [expressions::var(1, &column)];
            let call = expressions::call(ttl.document_ttl, pg_sys::INT4OID, &column);
            // SAFETY: `expressions::call` has made the expression in the current memory context.
            unsafe { defaults::is_stored(relid, attno, call) }
        })
}

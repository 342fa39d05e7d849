//! What any user may see of any table: it runs no user's code, waits for no lock, and reports an
//! unreadable object as a problem of that object.

use crate::pg::abi::values::Json;
use crate::store::cache;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// `ttl_internal.policy(rel) RETURNS jsonb`: the table's policy, and as `local` what is
/// remembered of the table beside it; NULL without a label, or for one that
/// cannot be read (`ttl.problems` says why). Used by the view `ttl.tables`.
#[pg_extern(sql = false)]
fn policy(rel: pg_sys::Oid) -> Option<Json> {
    let policy = cache::own_label(rel)?;
    let local = serde_json::to_value(&policy.local).ok()?;
    let mut shown = serde_json::to_value(&*policy).ok()?;
    shown.as_object_mut()?.insert("local".to_owned(), local);
    Some(Json(shown))
}

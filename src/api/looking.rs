//! What anyone may see of any table: nobody's code runs for it, it waits for nobody, and
//! an object that cannot be read is a problem of that object.

use crate::pg::look;
use crate::pg::values::Json;
use crate::store::label_of;
use pgrx::pg_sys;
use pgrx::prelude::*;

/// `ttl.policy(rel) RETURNS jsonb`: the table's label, as it is read; NULL if there is none,
/// or none that can be read (`ttl.problems` says why). Behind the view `ttl.tables`.
#[pg_extern(sql = false)]
fn policy(rel: pg_sys::Oid) -> Option<Json> {
    let policy = look::at(|| label_of(rel)).ok()??;
    serde_json::to_value(policy).ok().map(Json)
}

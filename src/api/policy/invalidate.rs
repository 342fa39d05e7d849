//! `ttl_internal.invalidate_plans`, called by CREATE EXTENSION: labels may exist already.

use crate::store::written;
use pgrx::prelude::*;

/// Makes every session replan its statements. Without the extension labels have no effect, so
/// earlier plans lack the filter. It invalidates all tables, because finding the tables that
/// inherit from a labelled one may take longer.
#[pg_extern(sql = false)]
fn invalidate_plans() {
    written::note_policy_change();
    // SAFETY: within a transaction; only queues a message.
    unsafe { pg_sys::CacheInvalidateRelcacheAll() };
}

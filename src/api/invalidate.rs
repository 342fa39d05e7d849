//! `ttl.invalidate_plans`: for CREATE EXTENSION where labels are there already.

use crate::store::written;
use pgrx::prelude::*;

/// Makes every session replan its statements. A label means nothing while the extension is
/// not there: plans made before it was created (again) lack the restriction. For all tables:
/// to find those that inherit from one with a label may take long, and this happens once.
#[pg_extern(sql = false)]
fn invalidate_plans() {
    written::note_policy_change();
    // SAFETY: within a transaction; only queues a message.
    unsafe { pg_sys::CacheInvalidateRelcacheAll() };
}

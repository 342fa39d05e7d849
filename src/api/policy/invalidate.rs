//! `ttl_internal.invalidate_plans`: at the end of CREATE EXTENSION.

use crate::error::Error;
use crate::store::{labels, written};
use pgrx::prelude::*;

/// Makes every session replan its statements. Without the extension labels have no effect, so
/// earlier plans lack the filter. It invalidates all tables, because finding the tables that
/// inherit from a labelled one may take longer.
///
/// Tables that have a time to live from before the extension was dropped wait for `ttl.resume`: writes without the
/// extension have not counted.
#[pg_extern(sql = false)]
fn invalidate_plans() {
    written::note_policy_change();
    // SAFETY: within a transaction; only queues a message.
    unsafe { pg_sys::CacheInvalidateRelcacheAll() };
    let waiting = labels().iter().filter(|(_, policy)| policy.is_on()).count();
    if waiting > 0 {
        Error::for_warning("tables have a time to live from before the extension was dropped")
        .detail(format!("Their number: {waiting}. Expired rows are hidden, and not deleted: writes have not counted meanwhile."))
        .hint("Look at tables that may have had other owners meanwhile: their triggers run. To start deletion, run: SELECT ttl.resume_restored(); to see the rows again, SELECT ttl.disable('...', revive_expired => true);")
        .warn();
    }
}

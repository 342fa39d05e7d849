//! What a worker does for shards of Citus: each node puts the trigger for keys on those that have come
//! without it, by a split, say.

use crate::citus::{self, Part};
use crate::deletion::transaction;
use crate::keys::trigger_placement;
use crate::pg::session::{self, locks};
use crate::settings;
use pgrx::pg_sys;

/// Puts the trigger on those of these relations that are shards and need it. One that is locked, or on
/// which that fails, gets it next time; `ttl.problems` shows it.
pub(in crate::worker) fn complete(relids: impl Iterator<Item = u32>) {
    if !citus::catalogs::is_known_to_be_present() {
        return;
    }
    for relid in relids.map(pg_sys::Oid::from) {
        let lacks = || {
            trigger_placement::is_needed(relid)
                && matches!(citus::part(relid), Some(Part::Shard(_)))
                && !trigger_placement::has(relid)
        };
        if transaction::run(|| Ok(lacks())).unwrap_or(false) {
            // An error is no more than the lack of a trigger, which goes on to be shown.
            drop(transaction::run(|| {
                session::limit_lock_waits(settings::lock_timeout_ms());
                if locks::try_relation(relid, pg_sys::ShareRowExclusiveLock) && lacks() {
                    trigger_placement::complete(relid);
                }
                Ok(())
            }));
        }
    }
}

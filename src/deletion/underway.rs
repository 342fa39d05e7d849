//! Whether a deletion of the extension's is under way, for `ttl.deleting()` (C27), and whose.

use crate::pg::session::scoped::{Scope, Scoped};
use pgrx::pg_sys;

/// The deletions under way, each with the root that it was the first to name.
static UNDERWAY: Scoped<Option<Root>> = Scoped::new();

/// The table with which a deletion begins, and its owner: code of others does not run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Root {
    pub(crate) owner: pg_sys::Oid,
    /// The referencing table, where PostgreSQL's look at it for a user's own statement has set it off:
    /// planning that look is PostgreSQL's business.
    pub(crate) looked_at: Option<pg_sys::Oid>,
}

/// Whether what runs now is part of one, or was set off by one.
pub(crate) fn is_underway() -> bool {
    !UNDERWAY.is_empty()
}

pub(crate) fn begin() -> Scope {
    UNDERWAY.enter(None)
}

/// Says whose rows the deletion deletes that has begun, unless it is part of another.
pub(crate) fn set_root(owner: pg_sys::Oid, looked_at: Option<pg_sys::Oid>) {
    if root().is_none() {
        UNDERWAY.change(|root| *root = Some(Root { owner, looked_at }));
    }
}

/// Whose rows are deleted.
pub(crate) fn root() -> Option<Root> {
    UNDERWAY.find(|root| root)
}

pub(crate) fn end(scope: Scope) {
    UNDERWAY.leave(scope);
}

/// Runs `work` as part of a deletion: of this owner's rows, as by [`set_root`].
pub(crate) fn during<T>(
    owner: pg_sys::Oid,
    looked_at: Option<pg_sys::Oid>,
    work: impl FnOnce() -> T,
) -> T {
    UNDERWAY.during(None, || {
        set_root(owner, looked_at);
        work()
    })
}

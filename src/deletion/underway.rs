//! Whether a deletion of the extension's is under way, for `ttl.deleting()` (C27), and whose.

use crate::pg::xact;
use pgrx::pg_sys;
use std::cell::Cell;

thread_local! {
    /// The transaction nesting level at which it began.
    static SINCE: Cell<Option<i32>> = const { Cell::new(None) };
    /// Whose rows it deletes.
    static ROOT: Cell<Option<Root>> = const { Cell::new(None) };
}

/// The table with which a deletion begins, and its owner: code of others does not run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Root {
    pub(crate) owner: pg_sys::Oid,
    /// The referencing table, where PostgreSQL's look at it for a user's own statement has set it off:
    /// planning that look is PostgreSQL's business.
    pub(crate) looked_at: Option<pg_sys::Oid>,
}

/// What [`end`] puts back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Former(Option<i32>, Option<Root>);

/// Whether what runs now is part of one, or was set off by one.
pub(crate) fn is_underway() -> bool {
    SINCE.get().is_some()
}

/// Begins one; after an error [`at_abort`] ends it.
pub(crate) fn begin() -> Former {
    let former = SINCE.get();
    SINCE.set(former.or_else(|| Some(xact::nest_level())));
    Former(former, ROOT.get())
}

/// Says whose rows the deletion deletes that has begun, unless it is part of another.
pub(crate) fn set_root(owner: pg_sys::Oid, looked_at: Option<pg_sys::Oid>) {
    if ROOT.get().is_none() {
        ROOT.set(Some(Root { owner, looked_at }));
    }
}

/// Whose rows are deleted.
pub(crate) fn root() -> Option<Root> {
    ROOT.get().filter(|_| is_underway())
}

/// Ends it.
pub(crate) fn end(former: Former) {
    SINCE.set(former.0);
    ROOT.set(former.1);
}

/// Runs `work` as part of a deletion.
pub(crate) fn during<T>(work: impl FnOnce() -> T) -> T {
    struct Ends(Former);
    impl Drop for Ends {
        fn drop(&mut self) {
            end(self.0);
        }
    }
    let _ends = Ends(begin());
    work()
}

/// Called when a transaction or subtransaction of this nesting level is rolled back. Raises no
/// error.
pub(crate) fn at_abort(level: i32) {
    SINCE.set(SINCE.get().filter(|&since| since < level));
    if SINCE.get().is_none() {
        ROOT.set(None);
    }
}

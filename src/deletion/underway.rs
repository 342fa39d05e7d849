//! Whether a deletion of the extension's is under way, for `ttl.deleting()` (C27).

use crate::pg::xact;
use std::cell::Cell;

thread_local! {
    /// The transaction nesting level at which it began.
    static SINCE: Cell<Option<i32>> = const { Cell::new(None) };
}

/// What [`end`] puts back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Former(Option<i32>);

/// Whether what runs now is part of one, or was set off by one.
pub(crate) fn is_underway() -> bool {
    SINCE.get().is_some()
}

/// Begins one; after an error [`at_abort`] ends it.
pub(crate) fn begin() -> Former {
    let former = SINCE.get();
    SINCE.set(former.or_else(|| Some(xact::nest_level())));
    Former(former)
}

/// Ends it.
pub(crate) fn end(former: Former) {
    SINCE.set(former.0);
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
}

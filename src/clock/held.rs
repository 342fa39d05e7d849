//! Whether expired rows are to stay for a while: the wall clock may be wrong, so that rows have expired by mistake (C24), or
//! the server has recovered and `ttl.timeline` does not confirm that yet.

use std::sync::OnceLock;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// The clock was set while the server ran, or the server was down for long.
    ByClock,
    /// The server is on another timeline than `ttl.timeline`.
    ByRecovery,
}

/// The clocks are compared by background processes, which know.
static WHY: OnceLock<fn() -> Option<Held>> = OnceLock::new();

/// Called once, at load.
pub(crate) fn init(why: fn() -> Option<Held>) {
    WHY.get_or_init(|| why);
}

/// Why no more is to be deleted than the user asks for by name, if so.
pub(crate) fn why() -> Option<Held> {
    WHY.get().and_then(|why| why())
}

pub(crate) fn is_held() -> bool {
    why().is_some()
}

//! Whether the wall clock may be wrong: it was set while the server ran, or the server was down for long, and what
//! has expired by it is not deleted for a while (C24).

use std::sync::OnceLock;

/// The clocks are compared by background processes, which know.
static IS_HELD: OnceLock<fn() -> bool> = OnceLock::new();

/// Called once, at load.
pub(crate) fn init(is_held: fn() -> bool) {
    IS_HELD.get_or_init(|| is_held);
}

/// Whether no more is to be deleted than the user asks for by name.
pub(crate) fn is_held() -> bool {
    IS_HELD.get().is_some_and(|is_held| is_held())
}

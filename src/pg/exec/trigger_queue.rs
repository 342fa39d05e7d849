//! Whether AFTER triggers are being fired, at the end of a statement: what they set off may join that
//! statement's queue.
//!
//! A foreign key's trigger runs a plan that PostgreSQL keeps for it, and frees where it asks for the plan
//! again and finds it invalid. If the triggers of what that plan's run sets off fired within it, they
//! would ask for it again, and free it while it runs. In the statement's queue they fire after it.

use crate::pg::session::scoped::{Scope, Scoped};

/// The statements whose triggers are being fired.
static FIRING: Scoped<()> = Scoped::new();

/// The triggers of a statement are being fired. `Copy`, for unguarded code.
#[derive(Clone, Copy)]
pub(crate) struct FiringScope(Scope);

impl FiringScope {
    pub(crate) fn begin() -> Self {
        Self(FIRING.enter(()))
    }

    pub(crate) fn end(self) {
        FIRING.leave(self.0);
    }
}

/// Whether there is a statement whose queue is being fired.
pub(crate) fn is_firing() -> bool {
    !FIRING.is_empty()
}

//! Whether AFTER triggers are being fired, at the end of a statement: what they set off may join that
//! statement's queue.
//!
//! A foreign key's trigger runs a plan that PostgreSQL keeps for it, and frees where it asks for the plan
//! again and finds it invalid. If the triggers of what that plan's run sets off fired within it, they
//! would ask for it again, and free it while it runs. In the statement's queue they fire after it.

use super::variable::Variable;
use super::xact;
use std::cell::Cell;

/// The transaction nesting level at which triggers are being fired; `None` if none are.
static LEVEL: Variable<Cell<Option<i32>>> = Variable::new(Cell::new(None));

/// The triggers of a statement are being fired. `Copy`, for unguarded code: after an error
/// [`at_abort`] forgets it.
#[derive(Clone, Copy)]
pub(crate) struct Firing {
    former: Option<i32>,
}

impl Firing {
    pub(crate) fn begin() -> Self {
        let former = LEVEL.get();
        LEVEL.set(Some(xact::nest_level()));
        Self { former }
    }

    pub(crate) fn end(self) {
        LEVEL.set(self.former);
    }
}

/// Whether there is a statement whose queue is being fired.
pub(crate) fn is_firing() -> bool {
    LEVEL.get().is_some()
}

/// Called when a transaction or subtransaction of this nesting level is rolled back. Raises no error.
pub(crate) fn at_abort(level: i32) {
    LEVEL.set(LEVEL.get().filter(|&firing| firing < level));
}

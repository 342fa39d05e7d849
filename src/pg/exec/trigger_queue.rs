//! Whether AFTER triggers are being fired, at the end of a statement: what they set off may join that
//! statement's queue.
//!
//! A foreign key's trigger runs a plan that PostgreSQL keeps for it, and frees where it asks for the plan
//! again and finds it invalid. If the triggers of what that plan's run sets off fired within it, they
//! would ask for it again, and free it while it runs. In the statement's queue they fire after it.

use crate::pg::session::scoped::Scoped;

/// The statements whose triggers are being fired.
pub(crate) static FIRING: Scoped<()> = Scoped::new();

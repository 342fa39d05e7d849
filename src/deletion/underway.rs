//! Whether a deletion of the extension's is under way, for `ttl.deleting()` (C27), and whose.

use crate::pg::abi::variable::Variable;
use crate::pg::catalog::{self, constraints};
use crate::pg::session::scoped::{Scope, Scoped};
use pgrx::pg_sys;
use std::cell::RefCell;

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

/// The tables of which rows have been deleted in this transaction, and that foreign keys are still to be checked for.
static TO_BE_CHECKED: Variable<RefCell<Vec<pg_sys::Oid>>> = Variable::new(RefCell::new(Vec::new()));

/// Notes that PostgreSQL looks for rows that refer to a deleted one of this table later, at the end of the statement or at COMMIT.
pub(crate) fn will_be_checked(relid: pg_sys::Oid) {
    TO_BE_CHECKED.with_borrow_mut(|all| {
        if !all.contains(&relid) {
            all.push(relid);
        }
    });
}

/// Whether such a check is still to be made.
pub(crate) fn is_any_checked() -> bool {
    TO_BE_CHECKED.with_borrow(|all| !all.is_empty())
}

/// As the root of a deletion: that of a row to which the table may refer, if such a check is still to be made.
pub(crate) fn root_of_check(referencing: pg_sys::Oid) -> Option<Root> {
    let referenced = is_any_checked().then(|| constraints::referenced_by(referencing))?;
    let checked = TO_BE_CHECKED
        .with_borrow(|all| all.iter().copied().find(|table| referenced.contains(table)))?;
    Some(Root {
        owner: catalog::owner(checked)?,
        looked_at: None,
    })
}

/// At the end of a transaction. Raises no error.
pub(crate) fn at_xact_end() {
    TO_BE_CHECKED.with_borrow_mut(Vec::clear);
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

//! Which ALTER TABLEs are running: one may validate foreign keys, and must then see every row.

use crate::pg::variable::Variable;
use crate::pg::xact::nest_level;
use pgrx::pg_sys;
use std::cell::RefCell;

/// A running ALTER TABLE that may validate foreign keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConstraintDdl {
    /// Who runs it.
    pub(crate) user: pg_sys::Oid,
    /// The table, and the partition that is attached or detached.
    pub(crate) tables: [Option<pg_sys::Oid>; 2],
}

/// The running ones, innermost last, with the transaction nesting level of each.
static RUNNING: Variable<RefCell<Vec<(ConstraintDdl, i32)>>> =
    Variable::new(RefCell::new(Vec::new()));

/// The innermost running ALTER TABLE.
pub(crate) fn innermost() -> Option<ConstraintDdl> {
    RUNNING.with_borrow(|all| all.last().map(|&(ddl, _)| ddl))
}

/// Begins an ALTER TABLE; returns the argument for [`leave`].
pub(crate) fn enter(ddl: ConstraintDdl) -> usize {
    let level = nest_level();
    RUNNING.with_borrow_mut(|all| {
        all.push((ddl, level));
        all.len() - 1
    })
}

/// Ends it; after an error [`at_end`] does.
pub(crate) fn leave(former: usize) {
    RUNNING.with_borrow_mut(|all| all.truncate(former));
}

/// Forgets what has ended with the transaction (0), or with a failed subtransaction of this
/// nesting level; an ALTER TABLE outside it goes on. Raises no error.
pub(crate) fn at_end(level: i32) {
    RUNNING.with_borrow_mut(|all| all.retain(|&(_, at)| at < level));
}

//! Which ALTER TABLEs are running: they may validate foreign keys, and must then see every
//! row.

use crate::pg::xact::nest_level;
use pgrx::pg_sys;
use std::cell::RefCell;

/// An ALTER TABLE that is running, and may validate foreign keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConstraintDdl {
    /// Who runs it.
    pub(crate) user: pg_sys::Oid,
    /// The table, and the partition that it attaches or detaches.
    pub(crate) tables: [Option<pg_sys::Oid>; 2],
}

thread_local! {
    /// Those that run, the innermost last, with the transaction nesting level of each.
    static RUNNING: RefCell<Vec<(ConstraintDdl, i32)>> = const { RefCell::new(Vec::new()) };
}

/// The innermost ALTER TABLE that is running.
pub(crate) fn innermost() -> Option<ConstraintDdl> {
    RUNNING.with_borrow(|all| all.last().map(|&(ddl, _)| ddl))
}

/// Marks the begin of an ALTER TABLE; returns what [`leave`] is to be told.
pub(crate) fn enter(ddl: ConstraintDdl) -> usize {
    let level = nest_level();
    RUNNING.with_borrow_mut(|all| {
        all.push((ddl, level));
        all.len() - 1
    })
}

/// Marks its end; an error ends it by [`at_end`].
pub(crate) fn leave(former: usize) {
    RUNNING.with_borrow_mut(|all| all.truncate(former));
}

/// The transaction has ended (0), or a subtransaction of this nesting level has failed: one
/// inside an ALTER TABLE (deeper) leaves its mark. Raises no error.
pub(crate) fn at_end(level: i32) {
    RUNNING.with_borrow_mut(|all| all.retain(|&(_, at)| at < level));
}

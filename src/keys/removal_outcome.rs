//! What becomes of a row that is to be removed.

use crate::pg::exec::table::Slot;
use pgrx::pg_sys::{self, TM_Result};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RemovalOutcome {
    /// The row is gone.
    Gone,
    /// Another session has changed or deleted it first.
    Changed,
    /// A trigger keeps it.
    Kept,
    /// The table's owner must delete it.
    Left,
}

/// Deletes the row, and nothing else. What the transaction has done to it since `command` began,
/// or the present one, counts as a change.
pub(super) fn delete_directly(row: Slot<'_>, command: Option<pg_sys::CommandId>) -> RemovalOutcome {
    outcome(row.delete(command))
}

/// The outcome, by the table access method's answer.
pub(super) fn outcome(result: Option<TM_Result::Type>) -> RemovalOutcome {
    match result {
        Some(TM_Result::TM_Ok | TM_Result::TM_Deleted) => RemovalOutcome::Gone,
        Some(_) => RemovalOutcome::Changed,
        None => RemovalOutcome::Kept,
    }
}

//! Deletes a row at once, with everything that this sets off.
//!
//! The table's own triggers run as its owner, in a security-restricted operation, with the owner's
//! `search_path` and without the session's temporary tables (`pg/session/gate.rs`): the user may not be
//! allowed to see the row. Actions of foreign keys run as the owners of the
//! referencing tables, as always. Neither privileges nor policies for rows are checked: the user
//! does not delete. Rules do not apply, as in logical replication. Also in a session that
//! replays others' changes the deletion is this server's own: foreign keys are enforced.

use super::no_action_checks;
use crate::deletion::underway;
use crate::pg::catalog::{self, cascade};
use crate::pg::exec::firing::Firing;
use crate::pg::exec::table::Slot;
use crate::pg::session::{self, gate};
use pgrx::pg_sys::{self, TM_Result};
use pgrx::prelude::*;

/// Deletes the row, which the transaction has locked, to make room for a new one: foreign keys with
/// NO ACTION are checked when the user's statement ends ([`no_action_checks`]).
#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
pub(super) extern "C-unwind" fn delete(row: Slot<'_>) -> RemovalOutcome {
    session::as_origin(|| {
        let table = row.table();
        let owner = catalog::owner(table.oid());
        if let Some(owner) = owner {
            underway::set_root(owner, None);
        }
        let fires = table.triggers().fire_own_at_delete();
        let lent = owner.filter(|_| fires).and_then(gate::lend);
        let reaches_others = || {
            owner
                .filter(|&owner| cascade::reaches_strangers(table.oid(), owner))
                .map(|_| gate::confine())
        };
        let bounds = lent.or_else(reaches_others);
        let firing = Firing::begin_statement(table, no_action_checks::is_one);
        let removal = firing.delete(row.tid(), &no_action_checks::REMOVAL, |command| {
            // By the command ID from before the triggers: one of them may have changed the row
            // itself.
            let removal = delete_directly(row, Some(command));
            (removal, removal == RemovalOutcome::Gone)
        });
        firing.free();
        if let Some(bounds) = bounds {
            bounds.end();
        }
        if removal == Some(RemovalOutcome::Gone) {
            no_action_checks::queue(row);
        }
        removal.unwrap_or(RemovalOutcome::Kept)
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RemovalOutcome {
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

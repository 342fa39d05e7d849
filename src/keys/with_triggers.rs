//! Deletes a row at once, with everything that this sets off.
//!
//! Triggers run as the user of the statement, not as the table's owner, whose functions would
//! run with this session's `search_path`. Actions of foreign keys run as the owners of the
//! referencing tables, as always. Neither privileges nor policies for rows are checked: the user
//! does not delete. Rules do not apply, as in logical replication. Also in a session that
//! replays others' changes the deletion is this server's own: foreign keys are enforced.
//!
//! Unguarded, with nothing to drop: PostgreSQL's errors pass through.

use super::removal::{self, Removal};
use super::{no_action_checks, strangers};
use crate::pg::firing::{Firing, Statement};
use crate::pg::gate::Bounded;
use crate::pg::session;
use crate::pg::table::Slot;
use pgrx::prelude::*;
use std::ffi::c_int;

/// What is to be undone afterwards.
#[derive(Clone, Copy)]
struct Around {
    /// The nest level of settings.
    settings: Option<c_int>,
    /// What restricts other people's code.
    bounds: Option<Bounded>,
}

/// Deletes the row, which the transaction has locked. With `for_new_row`, foreign keys with NO
/// ACTION are checked when the user's statement ends ([`no_action_checks`]).
pub(super) fn delete(row: Slot<'_>, for_new_row: bool) -> Removal {
    let (statement, around) = begin(row, for_new_row);
    let (removal, firing) = statement.delete(|command| {
        // By the command ID from before the triggers: one of them may have changed the row
        // itself.
        let removal = removal::delete_directly(row, Some(command));
        (removal, removal == Removal::Gone)
    });
    if removal == Some(Removal::Gone) && for_new_row {
        no_action_checks::queue(row);
    }
    end(firing, around);
    removal.unwrap_or(Removal::Kept)
}

#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
extern "C-unwind" fn begin(row: Slot<'_>, for_new_row: bool) -> (Statement<'_>, Around) {
    let around = Around {
        bounds: strangers::keep_in_bounds(row.table().oid()),
        settings: session::begin_as_origin(),
    };
    let is_left_out = |function| for_new_row && no_action_checks::is_one(function);
    (Firing::begin_statement(row, is_left_out), around)
}

#[pg_guard]
#[allow(improper_ctypes_definitions, reason = "called from Rust only")]
extern "C-unwind" fn end(firing: Firing<'_>, around: Around) {
    firing.free();
    session::end_as_origin(around.settings);
    if let Some(bounds) = around.bounds {
        bounds.end();
    }
}

//! ON DELETE NO ACTION, when an expired row makes room for a new one.
//!
//! Everything else that a deletion sets off happens before the new row is written: CASCADE and
//! the like must not reach rows that will refer to the new one. Only the check of NO ACTION
//! belongs to the end of the user's statement: a new row with the old key satisfies it. So it is
//! taken out of the deletion, and queued by itself.

use crate::deletion::underway;
use crate::pg::abi::error_context::{self, Explanation};
use crate::pg::abi::variable::Variable;
use crate::pg::exec::firing::Firing;
use crate::pg::exec::table::Slot;
use pgrx::pg_sys;
use std::cell::Cell;

/// What an error of a foreign key says while an expired row is removed for a new one, which a DELETE by
/// the user would not need (W4).
pub(super) static REMOVAL: Explanation = Explanation {
    context: c"removal of an expired row whose key the new row has",
    hint: c"A hidden expired row that other rows reference has the key. Delete those rows, or use ON DELETE CASCADE.",
};

/// Whether checks have been queued that the running query is to make.
static QUEUED: Variable<Cell<bool>> = Variable::new(Cell::new(false));

/// Whether it is `RI_FKey_noaction_del`, of foreign keys with ON DELETE NO ACTION.
pub(super) fn is_one(function: pg_sys::Oid) -> bool {
    function.to_u32() == pg_sys::F_RI_FKEY_NOACTION_DEL
}

/// Queues the checks for the deleted row; a statement is running whose triggers are yet to fire.
pub(super) fn queue(row: Slot<'_>) {
    underway::will_be_checked(row.table().oid());
    Firing::queue_in_statement(row, |function| !is_one(function));
    QUEUED.set(true);
}

/// Fires the triggers of a query's end, by `finish`: the error of a check that was queued is explained.
pub(crate) fn finish(finish: impl FnOnce()) {
    if QUEUED.replace(false) {
        error_context::explaining_references(&REMOVAL, finish);
    } else {
        finish();
    }
}

/// Called when a transaction or subtransaction is rolled back. Raises no error.
pub(crate) fn forget() {
    QUEUED.set(false);
}

//! What this transaction has written to tables with TTL, and whether it has changed a policy:
//! noted by statements, announced to the workers at commit.

use super::TablePolicy;
use crate::pg::abi::variable::Variable;
use crate::settings;
use std::cell::{Cell, RefCell};

/// Rows were written,
pub(crate) const ANY: u8 = 1;
/// or rows whose time the statement gave, which may have come expired.
pub(crate) const KEPT_TS: u8 = 2;

/// What was written to the tables of one policy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written {
    /// The table that carries the policy.
    pub(crate) labelled_table: u32,
    /// [`ANY`], [`KEPT_TS`].
    pub(crate) bits: u8,
    /// Rows may expire before the next routine look.
    pub(crate) soon: bool,
}

static WRITTEN: Variable<RefCell<Vec<Written>>> = Variable::new(RefCell::new(Vec::new()));
static POLICY_CHANGED: Variable<Cell<bool>> = Variable::new(Cell::new(false));

/// Notes that a statement has written to a table under this policy.
pub(crate) fn note(policy: &TablePolicy) {
    // A row's own date may be past when it comes.
    let kept = settings::preserve_ts() || !policy.rules.is_empty();
    note_bits(policy, if kept { ANY | KEPT_TS } else { ANY });
}

/// As [`note`], for COPY, which may give rows their `_ts`.
pub(crate) fn note_copy(policy: &TablePolicy) {
    note_bits(policy, ANY | KEPT_TS);
}

fn note_bits(policy: &TablePolicy, bits: u8) {
    // Rows that cannot expire before the next routine look need no earlier one.
    let soon = policy.clock.is_some_and(|clock| clock.ttl.is_some())
        || bits & KEPT_TS != 0
        || policy
            .label
            .default_ttl
            .is_some_and(|default| default <= settings::naptime_seconds());
    let labelled_table = policy.labelled_table.to_u32();
    WRITTEN.with_borrow_mut(|all| {
        match all
            .iter_mut()
            .find(|known| known.labelled_table == labelled_table)
        {
            Some(known) => {
                known.bits |= bits;
                known.soon |= soon;
            }
            None => all.push(Written {
                labelled_table,
                bits,
                soon,
            }),
        }
    });
}

/// Notes what a prepared transaction had written, which this one commits.
pub(crate) fn note_prepared(labelled_table: u32, bits: u8) {
    let written = Written {
        labelled_table,
        bits: bits | KEPT_TS,
        soon: true,
    };
    WRITTEN.with_borrow_mut(|all| all.push(written));
}

/// Notes that this transaction changes a policy, or creates the extension.
pub(crate) fn note_policy_change() {
    POLICY_CHANGED.set(true);
}

/// Takes what was noted, and whether a policy was changed. Raises no error.
pub(crate) fn take() -> (Vec<Written>, bool) {
    (
        WRITTEN.with_borrow_mut(std::mem::take),
        POLICY_CHANGED.take(),
    )
}

/// Returns the memory of [`take`], for the next transaction. Raises no error.
pub(crate) fn give_back(mut written: Vec<Written>) {
    written.clear();
    WRITTEN.with_borrow_mut(|all| {
        if all.capacity() == 0 {
            *all = written;
        }
    });
}

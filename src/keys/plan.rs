//! The keys to look up in a table: each session's cache.

use super::removal::Deletion;
use super::same_xact_children;
use crate::pg::abi::variable::ByOid;
use crate::pg::catalog::invalidation;
use crate::pg::exec::table::{Compared, Table};
use crate::pg::exec::unique::{self, Unique};
use crate::store::{TablePolicy, cache};
use pgrx::pg_sys;
use std::rc::Rc;

/// A unique or exclusion index.
#[derive(Debug)]
pub(super) struct UniqueKey {
    pub(super) unique: Unique,
    /// The columns that the key and its predicate depend on: an UPDATE that changes none of them
    /// needs no look-up.
    pub(super) sources: Vec<Compared>,
    /// It depends on a generated column, or on the whole row.
    pub(super) always_changes: bool,
}

/// A table with keys, whose rows can expire.
#[derive(Debug)]
pub(super) struct KeyPlan {
    pub(super) policy: Rc<TablePolicy>,
    pub(super) deletion: Deletion,
    pub(super) keys: Vec<UniqueKey>,
    /// Generated columns of keys, which are not computed yet when BEFORE triggers fire.
    pub(super) generated: Vec<i16>,
}

impl KeyPlan {
    /// Whether there is anything to evaluate before a key is known.
    pub(super) fn needs_evaluation(&self) -> bool {
        !self.generated.is_empty() || self.keys.iter().any(|key| key.unique.needs_evaluation)
    }
}

static PLANS: ByOid<Option<Rc<KeyPlan>>> = ByOid::empty();

/// The plan for the table; `None` if it has no keys, or no row of it can expire.
pub(super) fn of(table: Table<'_>) -> Option<Rc<KeyPlan>> {
    invalidation::cached(&PLANS, table.oid(), || true, || read(table).map(Rc::new))
}

/// The plan, if it is known, and for it rows need only be judged by the time of their last modification.
pub(super) fn known_by_clock(table: Table<'_>) -> Option<Rc<KeyPlan>> {
    let needs_little =
        |plan: &Rc<KeyPlan>| plan.policy.rules.is_empty() && !plan.needs_evaluation();
    PLANS.with_borrow(|plans| plans.get(&table.oid())?.clone().filter(needs_little))
}

/// Registers for invalidations; once, at load.
pub(super) fn init() {
    invalidation::listen(forget);
}

/// Forgets the relation, or all of them. As a callback for invalidations it raises no error and
/// looks nothing up.
fn forget(relid: pg_sys::Oid) {
    same_xact_children::forget();
    invalidation::forget(&PLANS, relid);
}

fn read(table: Table<'_>) -> Option<KeyPlan> {
    let policy = cache::policy(table.oid()).filter(|policy| policy.hides())?;
    let mut plan = KeyPlan {
        policy,
        deletion: Deletion::of(table),
        keys: vec![],
        generated: vec![],
    };
    for unique in unique::of(table) {
        let key = key(table, unique, &mut plan.generated);
        plan.keys.push(key);
    }
    (!plan.keys.is_empty()).then_some(plan)
}

fn key(table: Table<'_>, unique: Unique, generated: &mut Vec<i16>) -> UniqueKey {
    let is_generated = |attno| {
        table
            .column(attno)
            .is_some_and(|column| column.attgenerated != 0)
    };
    let mut columns = unique.columns.clone();
    let mut key = UniqueKey {
        unique,
        sources: vec![],
        always_changes: false,
    };
    if columns.first().is_some_and(|&attno| attno <= 0) {
        // The whole row, generated columns included.
        key.always_changes = true;
        let all = (1..).take_while(|&attno| table.column(attno).is_some());
        columns.extend(all.filter(|&attno| is_generated(attno)));
    }
    for attno in columns.into_iter().filter(|&attno| attno > 0) {
        if is_generated(attno) {
            key.always_changes = true;
            if !generated.contains(&attno) {
                generated.push(attno);
            }
        } else {
            key.sources.push(table.compared(attno));
        }
    }
    key
}

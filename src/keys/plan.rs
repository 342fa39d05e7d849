//! The keys to look up in a table: each session's cache.

use super::removal::Deletion;
use super::{same_xact_children, strangers};
use crate::pg::{index, lists};
use crate::store::{TablePolicy, cache};
use pgrx::pg_sys;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// A column of a key, and the operator by which two keys conflict in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// 0: an expression.
    pub(super) attno: i16,
    pub(super) procedure: pg_sys::Oid,
    pub(super) strategy: u16,
    pub(super) collation: pg_sys::Oid,
}

/// A column on which a key depends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    pub(super) attno: i16,
    pub(super) length: i16,
    pub(super) by_value: bool,
}

/// A unique or exclusion index.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) index: pg_sys::Oid,
    pub(super) parts: Vec<Part>,
    pub(super) nulls_not_distinct: bool,
    /// The columns that the key and its predicate depend on: an UPDATE that changes none of them
    /// needs no look-up.
    pub(super) sources: Vec<Source>,
    /// It depends on a generated column, or on the whole row.
    pub(super) always_changes: bool,
    /// It has expressions or a predicate.
    pub(super) needs_evaluation: bool,
    /// Its constraint is not deferrable: who writes a key waits for others who write the same
    /// one.
    pub(super) waits: bool,
}

/// A table with keys, whose rows can expire.
#[derive(Debug)]
pub(super) struct KeyPlan {
    pub(super) policy: Rc<TablePolicy>,
    pub(super) deletion: Deletion,
    pub(super) keys: Vec<Key>,
    /// Generated columns of keys, which are not computed yet when BEFORE triggers fire.
    pub(super) generated: Vec<i16>,
}

impl KeyPlan {
    /// Whether there is anything to evaluate before a key is known.
    pub(super) fn needs_evaluation(&self) -> bool {
        !self.generated.is_empty() || self.keys.iter().any(|key| key.needs_evaluation)
    }
}

thread_local! {
    static PLANS: RefCell<HashMap<pg_sys::Oid, Option<Rc<KeyPlan>>>> = RefCell::new(HashMap::new());
    /// Counts invalidations, so that an answer read before one is not stored after it.
    static GENERATION: Cell<u64> = const { Cell::new(0) };
}

/// The plan for the table; `None` if it has no keys, or no row of it can expire.
///
/// # Safety
/// `table` is open and locked.
pub(super) unsafe fn of(table: pg_sys::Relation) -> Option<Rc<KeyPlan>> {
    // SAFETY: as required of the caller.
    let relid = unsafe { (*table).rd_id };
    if let Some(known) = PLANS.with_borrow(|plans| plans.get(&relid).cloned()) {
        return known;
    }
    let before = GENERATION.get();
    // SAFETY: as required of the caller.
    let found = unsafe { read(table, relid) }.map(Rc::new);
    if GENERATION.get() == before {
        PLANS.with_borrow_mut(|plans| plans.insert(relid, found.clone()));
    }
    found
}

/// How many invalidations there have been.
pub(super) fn generation() -> u64 {
    GENERATION.get()
}

/// Registers for invalidations; once, at load.
pub(crate) fn init() {
    // SAFETY: the callback lives as long as the library.
    unsafe { pg_sys::CacheRegisterRelcacheCallback(Some(forget), pg_sys::Datum::from(0)) };
}

/// Forgets the relation, or all of them. As a callback for invalidations it raises no error and
/// looks nothing up.
unsafe extern "C-unwind" fn forget(_arg: pg_sys::Datum, relid: pg_sys::Oid) {
    GENERATION.set(GENERATION.get().wrapping_add(1));
    same_xact_children::forget();
    strangers::forget();
    PLANS.with_borrow_mut(|plans| {
        if relid == pg_sys::InvalidOid {
            plans.clear();
        } else {
            plans.remove(&relid);
        }
    });
}

/// # Safety
/// `table` is open and locked.
unsafe fn read(table: pg_sys::Relation, relid: pg_sys::Oid) -> Option<KeyPlan> {
    let policy = cache::policy(relid).filter(|policy| policy.hides())?;
    let mut plan = KeyPlan {
        policy,
        // SAFETY: open.
        deletion: unsafe { Deletion::of(table, relid) },
        keys: vec![],
        generated: vec![],
    };
    let share = pg_sys::AccessShareLock.cast_signed();
    // SAFETY: the table is locked, and each index while it is read.
    unsafe {
        for oid in lists::oids(pg_sys::RelationGetIndexList(table)) {
            let index = pg_sys::index_open(oid, share);
            if is_enforced(index) {
                let key = key(table, index, &mut plan.generated);
                plan.keys.push(key);
            }
            pg_sys::index_close(index, share);
        }
    }
    (!plan.keys.is_empty()).then_some(plan)
}

/// Whether the index can reject rows. One that is being built counts: it starts to do so without
/// an invalidation of the table.
///
/// # Safety
/// `index` is open.
unsafe fn is_enforced(index: pg_sys::Relation) -> bool {
    // SAFETY: as required of the caller.
    let form = unsafe { &*(*index).rd_index };
    (form.indisunique || form.indisexclusion) && form.indislive
}

/// # Safety
/// `table` and `index` are open and locked.
unsafe fn key(table: pg_sys::Relation, index: pg_sys::Relation, generated: &mut Vec<i16>) -> Key {
    // SAFETY: an open table and index; the index's information has an operator for each
    // key column.
    unsafe {
        let relid = (*table).rd_id;
        let info = &mut *pg_sys::BuildIndexInfo(index);
        let is_exclusion = !info.ii_ExclusionOps.is_null();
        if !is_exclusion {
            pg_sys::BuildSpeculativeIndexInfo(index, info);
        }
        let (procedures, strategies) = if is_exclusion {
            (info.ii_ExclusionProcs, info.ii_ExclusionStrats)
        } else {
            (info.ii_UniqueProcs, info.ii_UniqueStrats)
        };
        let count = usize::try_from(info.ii_NumIndexKeyAttrs).unwrap_or(0);
        let parts = (0..count)
            .map(|at| Part {
                attno: info.ii_IndexAttrNumbers[at],
                procedure: *procedures.add(at),
                strategy: *strategies.add(at),
                collation: *(*index).rd_indcollation.add(at),
            })
            .collect();
        let mut key = Key {
            index: (*index).rd_id,
            parts,
            nulls_not_distinct: info.ii_NullsNotDistinct,
            sources: vec![],
            always_changes: false,
            needs_evaluation: !info.ii_Expressions.is_null() || !info.ii_Predicate.is_null(),
            waits: (*(*index).rd_index).indimmediate,
        };
        let mut columns = index::columns_of(info);
        if columns.first().is_some_and(|&attno| attno <= 0) {
            // The whole row, generated columns included.
            key.always_changes = true;
            let natts = i16::try_from((*(*table).rd_att).natts).unwrap_or(0);
            let generated = |&attno: &i16| pg_sys::get_attgenerated(relid, attno) != 0;
            columns.extend((1..=natts).filter(generated));
        }
        for attno in columns {
            if attno <= 0 {
                continue;
            }
            if pg_sys::get_attgenerated(relid, attno) != 0 {
                key.always_changes = true;
                if !generated.contains(&attno) {
                    generated.push(attno);
                }
            } else {
                key.sources.push(source(relid, attno));
            }
        }
        key
    }
}

fn source(relid: pg_sys::Oid, attno: i16) -> Source {
    let (mut length, mut by_value) = (0, false);
    // SAFETY: syscache look-ups within a transaction.
    unsafe {
        pg_sys::get_typlenbyval(
            pg_sys::get_atttype(relid, attno),
            &mut length,
            &mut by_value,
        );
    }
    Source {
        attno,
        length,
        by_value,
    }
}

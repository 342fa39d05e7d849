//! COPY FROM keeps its multi-insert, which any BEFORE INSERT trigger would turn off.
//!
//! `ttl.now()` is fixed for the statement, so a row live at its start stays live. If no row of
//! the table is expired when COPY starts, the trigger has nothing to do and is hidden from COPY
//! (`docs/decisions/0016-free-keys-by-trigger.md`). A few expired rows are removed first; if
//! there are many, or another session works on one, the trigger stays.

use super::bulk_precheck::{Budget, has_no_expired_row};
use super::{restoring, skip_trigger};
use crate::pg::{catalog, locks, relation, roles};
use crate::settings;
use crate::store::extension::{self, Functions};
use crate::store::{TablePolicy, cache, written};
use pgrx::pg_sys::{self, CopyStmt};
use std::cell::RefCell;

/// The most partitions that are looked at.
const FEW_PARTITIONS: usize = 100;

thread_local! {
    /// The tables whose trigger is hidden from COPY.
    static HIDDEN: RefCell<Vec<pg_sys::Oid>> = const { RefCell::new(Vec::new()) };
}

/// Prepares a COPY that writes to a table with TTL, and notes the write for the workers.
/// [`end_copies`] follows it.
///
/// # Safety
/// `stmt` is a statement of the parser.
pub(crate) unsafe fn before_write(stmt: *mut CopyStmt) {
    // In a read-only transaction COPY fails, and PostgreSQL says why.
    // SAFETY: fields of a parsed statement; the lock that COPY takes first.
    unsafe {
        if !(*stmt).is_from
            || (*stmt).relation.is_null()
            || pg_sys::XactReadOnly
            || !extension::is_present()
        {
            return;
        }
        let lock = pg_sys::RowExclusiveLock.cast_signed();
        let (missing_ok, none) = (pg_sys::RVROption::RVR_MISSING_OK, core::ptr::null_mut());
        let relid =
            pg_sys::RangeVarGetRelidExtended((*stmt).relation, lock, missing_ok, None, none);
        if let Some(policy) = cache::policy(relid).filter(|policy| policy.expires()) {
            restoring::before_copy(stmt, relid, &policy);
            written::note_copy(&policy);
            begin_copy(stmt, relid);
        }
    }
}

/// Before a COPY FROM: hides the trigger where it has nothing to do. The table is locked as COPY
/// will lock it.
///
/// # Safety
/// `stmt` is a COPY FROM of the parser.
unsafe fn begin_copy(stmt: *mut CopyStmt, relid: pg_sys::Oid) {
    let Some(functions) = extension::functions() else {
        return;
    };
    let Some(policy) = cache::policy(relid).filter(|policy| policy.hides()) else {
        return;
    };
    // SAFETY: as required of the caller.
    if settings::show_expired() || !unsafe { stamps_all_rows(stmt, relid, &policy) } {
        return;
    }
    let tables = catalog::all_inheritors(relid);
    let is_partitioned =
        catalog::class(relid).is_some_and(|c| c.relkind == pg_sys::RELKIND_PARTITIONED_TABLE);
    // COPY writes to a table itself or, through a partitioned one, to its partitions.
    let tables = if is_partitioned { tables } else { vec![relid] };
    if tables.len() > FEW_PARTITIONS || !roles::may_insert(relid) {
        return;
    }
    let mut budget = Budget::new();
    for table in tables {
        // COPY may never reach this partition: do not wait for it, and do not keep it locked.
        let lock = pg_sys::RowExclusiveLock;
        if !locks::try_relation(table, lock) {
            continue;
        }
        if catalog::class(table).is_some() {
            // SAFETY: the table is locked, and so cannot vanish.
            unsafe { hide_trigger(table, &functions, &mut budget) };
            if std::mem::take(&mut budget.deleted) {
                continue;
            }
        }
        locks::release(table, lock);
    }
}

/// Hides the trigger of one table if it is the only BEFORE INSERT trigger for rows and has
/// nothing to do.
///
/// # Safety
/// The table is locked.
unsafe fn hide_trigger(table: pg_sys::Oid, functions: &Functions, budget: &mut Budget) {
    // SAFETY: as required of the caller; the description belongs to the open relation.
    unsafe {
        let open = relation::Open::locked(table);
        let needs_look = (*open.as_ptr()).trigdesc.as_ref().is_some_and(|triggers| {
            triggers.trig_insert_before_row
                && skip_trigger::is_only_one(triggers, functions, pg_sys::TRIGGER_TYPE_INSERT)
        });
        if !needs_look || !has_no_expired_row(&open, table, budget) {
            return;
        }
        // The check may have reloaded the description.
        if let Some(triggers) = (*open.as_ptr()).trigdesc.as_mut() {
            HIDDEN.with_borrow_mut(|hidden| hidden.push(table));
            triggers.trig_insert_before_row = false;
        }
    }
}

/// After COPY, and when a transaction fails: PostgreSQL reads the triggers again.
pub(crate) fn end_copies() {
    for table in HIDDEN.take() {
        // SAFETY: what PostgreSQL itself does at an abort, too; reads no catalog then.
        unsafe { pg_sys::RelationCacheInvalidateEntry(table) };
    }
}

/// Whether all rows get `_ts` from its default. Where the data give it, rows may come expired.
///
/// # Safety
/// `stmt` is a COPY FROM of the parser.
unsafe fn stamps_all_rows(stmt: *mut CopyStmt, relid: pg_sys::Oid, policy: &TablePolicy) -> bool {
    // SAFETY: a list of String nodes; NIL means all columns.
    unsafe {
        let Some(clock) = policy.clock.filter(|_| policy.rules.is_empty()) else {
            return false;
        };
        if (*stmt).attlist.is_null() || !clock.ts.has_default {
            return false;
        }
        crate::pg::lists::iter::<pg_sys::String>((*stmt).attlist).all(|node| {
            let name = crate::pg::encoding::from_pointer((*node).sval);
            catalog::attribute(relid, &name).is_some_and(|column| column.attno != clock.ts.attno)
        })
    }
}

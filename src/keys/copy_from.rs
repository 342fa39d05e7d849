//! COPY FROM keeps its multi-insert, which any BEFORE INSERT trigger would turn off.
//!
//! `ttl.now()` is fixed for the statement, so a row live at its start stays live. If no row of
//! the table is expired when COPY starts and none comes expired, the trigger has nothing to do and
//! is hidden from COPY (`docs/decisions/0016-free-keys-by-trigger.md`). A few expired rows are
//! removed first; if there are many, or another session works on one, or the data give `_ts`, the
//! keys are looked up batch by batch ([`super::batches`]), or else the trigger stays.

use super::batches::Batches;
use super::bulk_precheck::{Budget, has_no_expired_row};
use super::restoring;
use crate::pg::{catalog, encoding, insertion, lists, locks, relation, roles};
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
/// True if the keys are looked up in batches; [`after_write`] follows.
///
/// # Safety
/// `stmt` is a statement of the parser.
pub(crate) unsafe fn before_write(stmt: *mut CopyStmt) -> bool {
    // In a read-only transaction COPY fails, and PostgreSQL says why.
    // SAFETY: fields of a parsed statement; the lock that COPY takes first.
    unsafe {
        if !(*stmt).is_from
            || (*stmt).relation.is_null()
            || pg_sys::XactReadOnly
            || !extension::is_present()
        {
            return false;
        }
        let lock = pg_sys::RowExclusiveLock.cast_signed();
        let (missing_ok, none) = (pg_sys::RVROption::RVR_MISSING_OK, core::ptr::null_mut());
        let relid =
            pg_sys::RangeVarGetRelidExtended((*stmt).relation, lock, missing_ok, None, none);
        if let Some(policy) = cache::policy(relid).filter(|policy| policy.expires()) {
            restoring::before_copy(stmt, relid, &policy);
            written::note_copy(&policy);
            let columns = lists::iter::<pg_sys::String>((*stmt).attlist);
            let names = columns.map(|name| encoding::from_pointer((*name).sval));
            return begin_copy(&names.collect::<Vec<_>>(), relid);
        }
    }
    false
}

/// Before a COPY FROM with these columns: hides the trigger where it has nothing to do, or where
/// batches are looked up, which is true then. The table is locked as COPY will lock it.
fn begin_copy(columns: &[String], relid: pg_sys::Oid) -> bool {
    let Some(functions) = extension::functions() else {
        return false;
    };
    let Some(policy) = cache::policy(relid).filter(|policy| policy.hides()) else {
        return false;
    };
    if settings::show_expired() || !roles::may_insert(relid) {
        return false;
    }
    let all_stamped = stamps_all_rows(columns, relid, &policy);
    let is_partitioned =
        catalog::class(relid).is_some_and(|c| c.relkind == pg_sys::RELKIND_PARTITIONED_TABLE);
    if !is_partitioned {
        return by_batches_or_nothing(relid, &functions, all_stamped);
    }
    // COPY writes through a partitioned table to its partitions.
    let tables = catalog::all_inheritors(relid);
    if !all_stamped || tables.len() > FEW_PARTITIONS {
        return false;
    }
    let mut budget = Budget::new();
    for table in tables {
        // COPY may never reach this partition: do not wait for it, and do not keep it locked.
        let lock = pg_sys::RowExclusiveLock;
        if !locks::try_relation(table, lock) {
            continue;
        }
        if catalog::class(table).is_some() {
            let open = relation::Open::locked(table);
            if has_only_trigger(&open, &functions) && has_no_expired_row(&open, table, &mut budget)
            {
                hide_trigger(&open);
            }
            if std::mem::take(&mut budget.deleted) {
                continue;
            }
        }
        locks::release(table, lock);
    }
    false
}

/// For a table that is not partitioned: hides the trigger where it has nothing to do; true where
/// instead batches are looked up.
fn by_batches_or_nothing(relid: pg_sys::Oid, functions: &Functions, all_stamped: bool) -> bool {
    let open = relation::Open::locked(relid);
    if !has_only_trigger(&open, functions) {
        return false;
    }
    let none_expired = has_no_expired_row(&open, relid, &mut Budget::new());
    if none_expired && all_stamped {
        hide_trigger(&open);
        return false;
    }
    let Some(batches) = Batches::of(&open, none_expired) else {
        return false;
    };
    let same = relation::Open::locked(relid);
    if !insertion::begin(open, Box::new(batches)) {
        return false;
    }
    // The batches show it again.
    same.table().triggers().hide(pg_sys::TRIGGER_TYPE_INSERT);
    true
}

/// Whether the trigger is the only BEFORE INSERT trigger for rows.
fn has_only_trigger(open: &relation::Open, functions: &Functions) -> bool {
    let triggers = open.table().triggers();
    triggers.fire_only(pg_sys::TRIGGER_TYPE_INSERT, functions.free_expired_keys)
}

fn hide_trigger(open: &relation::Open) {
    let table = open.table();
    table.triggers().hide(pg_sys::TRIGGER_TYPE_INSERT);
    HIDDEN.with_borrow_mut(|hidden| hidden.push(table.oid()));
}

/// After COPY; `by_batches` is what [`before_write`] has returned.
pub(crate) fn after_write(by_batches: bool) {
    if by_batches {
        insertion::end();
    }
    show_triggers();
}

/// When a transaction or subtransaction of this nest level fails.
pub(crate) fn at_abort(level: i32) {
    insertion::end_from(level);
    show_triggers();
}

/// PostgreSQL reads the triggers again.
fn show_triggers() {
    for table in HIDDEN.take() {
        // SAFETY: what PostgreSQL itself does at an abort, too; reads no catalog then.
        unsafe { pg_sys::RelationCacheInvalidateEntry(table) };
    }
}

/// Whether all rows get `_ts` from its default. Where the data give it, rows may come expired.
/// COPY without columns means all.
fn stamps_all_rows(columns: &[String], relid: pg_sys::Oid, policy: &TablePolicy) -> bool {
    let clock = policy.clock.filter(|_| policy.rules.is_empty());
    clock.is_some_and(|clock| {
        let is_other = |column: catalog::Attribute| column.attno != clock.ts.attno;
        let mut found = columns.iter().map(|name| catalog::attribute(relid, name));
        clock.ts.has_default && !columns.is_empty() && found.all(|it| it.is_some_and(is_other))
    })
}

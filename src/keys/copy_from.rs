//! COPY FROM keeps its multi-insert, which any BEFORE INSERT trigger would turn off.
//!
//! `ttl.now()` is fixed for the statement, so a row live at its start stays live. If no row of
//! the table is expired when COPY starts and none comes expired, the trigger has nothing to do and
//! is hidden from COPY (`docs/decisions/0016-free-keys-by-trigger.md`). A few expired rows are
//! removed first; if there are many, or another session works on one, or the data give `_ts`, the
//! trigger fires for each row, and examines the table later ([`super::many_rows`]).

use super::bulk_precheck::{Budget, has_no_expired_row};
use super::restoring;
use crate::pg::abi::{encoding, lists};
use crate::pg::catalog::{self, roles};
use crate::pg::exec::relation;
use crate::pg::session::locks;
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
/// [`after_write`] follows.
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
            || extension::is_known_to_be_absent()
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
            let columns = lists::iter::<pg_sys::String>((*stmt).attlist);
            let names = columns.map(|name| encoding::from_pointer((*name).sval));
            hide_triggers(&names.collect::<Vec<_>>(), relid);
        }
    }
}

/// Before a COPY FROM with these columns: hides the trigger from COPY where it has nothing to do.
/// The table is locked as COPY will lock it.
fn hide_triggers(columns: &[String], relid: pg_sys::Oid) {
    let Some(functions) = extension::functions() else {
        return;
    };
    let Some(policy) = cache::policy(relid).filter(|policy| policy.hides()) else {
        return;
    };
    if settings::show_expired() {
        return;
    }
    let all_stamped = stamps_all_rows(columns, relid, &policy);
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
        if let Some(class) = catalog::class(table) {
            // Rows of a partitioned table meet the triggers of its partitions.
            let live_only = all_stamped || class.relkind == pg_sys::RELKIND_PARTITIONED_TABLE;
            if live_only {
                hide_idle_trigger(table, &functions, &mut budget);
            }
        }
        if !std::mem::take(&mut budget.deleted) {
            locks::release(table, lock);
        }
    }
}

/// Hides the trigger of one table, in which no row comes expired, if no row of it is expired. The
/// table is locked.
fn hide_idle_trigger(relid: pg_sys::Oid, functions: &Functions, budget: &mut Budget) {
    let open = relation::OpenRelation::locked(relid);
    if has_only_trigger(&open, functions) && has_no_expired_row(&open, relid, budget) {
        hide_trigger(&open);
    }
}

/// Whether the trigger is the only BEFORE INSERT trigger for rows.
fn has_only_trigger(open: &relation::OpenRelation, functions: &Functions) -> bool {
    let triggers = open.table().triggers();
    triggers.fire_only(pg_sys::TRIGGER_TYPE_INSERT, functions.free_expired_keys)
}

fn hide_trigger(open: &relation::OpenRelation) {
    let table = open.table();
    table.triggers().hide(pg_sys::TRIGGER_TYPE_INSERT);
    HIDDEN.with_borrow_mut(|hidden| hidden.push(table.oid()));
}

/// After COPY, or when its transaction or subtransaction fails: PostgreSQL reads the triggers again.
pub(crate) fn after_write() {
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

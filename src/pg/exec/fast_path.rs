//! The scan by which PostgreSQL 19 looks up a referenced row, without a query (`ri_FastPathCheck`
//! in ri_triggers.c): it asks for permission, begins a scan of the key's index, locks each row
//! that it finds, and ends the scan. No hook sees those rows. So for the time of such a scan the
//! table's entry in the relation cache has a copy of its access method that judges rows as they
//! are locked (`docs/decisions/0079-foreign-keys-on-19.md`). This is the only place that does so.
//!
//! Unguarded, as [`crate::pg::abi::unguarded`], unless a function says otherwise.

#![allow(ffi_unwind_calls, reason = "PostgreSQL's own longjmp passes")]

use super::table::{Slot, Table};
use crate::pg::abi::lists;
use crate::pg::abi::variable::Variable;
use crate::pg::catalog::invalidation;
use core::ffi::c_void;
use core::ptr::null_mut;
use pgrx::pg_sys::{self, IndexFetchTableData, List, LockTupleMode, LockWaitPolicy, Oid, RTEKind};
use pgrx::pg_sys::{RTEPermissionInfo, RangeTblEntry, Relation, TM_Result, TableAmRoutine};
use std::cell::RefCell;

/// Who judges the rows.
pub(crate) trait Judge {
    /// Whether rows of the table may be hidden; calls no function of PostgreSQL.
    fn may_mind(table: Oid) -> bool;
    /// A look-up in this table begins: calls [`begin`] if rows are hidden. Guarded.
    extern "C-unwind" fn begin(table: Oid);
    /// Whether the row is hidden from the look-up.
    fn is_hidden(by: *const c_void, row: Slot<'_>, has_waited: bool) -> bool;
}

/// A look-up that is running.
#[derive(Clone, Copy)]
struct FastPathScan {
    table: Oid,
    relation: Relation,
    own: *const TableAmRoutine,
    /// What the access method has made for the scan; null until it has begun.
    fetch: *mut IndexFetchTableData,
    level: i32,
    by: *const c_void,
}

/// The running look-ups, innermost last: the cast of a key may run others.
static SCANS: Variable<RefCell<Vec<FastPathScan>>> = Variable::new(RefCell::new(Vec::new()));
/// Access methods, each with its copy that judges. There are few, and they are never freed.
static COPIES: Variable<RefCell<Vec<(*const TableAmRoutine, *const TableAmRoutine)>>> =
    Variable::new(RefCell::new(Vec::new()));
static mut PREVIOUS: pg_sys::ExecutorCheckPerms_hook_type = None;
static mut IS_HIDDEN: Option<fn(*const c_void, Slot<'_>, bool) -> bool> = None;

/// Installs the hook; once, at load.
pub(crate) fn init<J: Judge>() {
    invalidation::listen(put_back);
    // SAFETY: single-threaded, in the postmaster, before any query.
    unsafe {
        IS_HIDDEN = Some(J::is_hidden);
        PREVIOUS = pg_sys::ExecutorCheckPerms_hook;
        pg_sys::ExecutorCheckPerms_hook = Some(trampoline::<J>);
    }
}

/// PostgreSQL calls it last, when it has found that all is permitted.
unsafe extern "C-unwind" fn trampoline<J: Judge>(
    tables: *mut List,
    permissions: *mut List,
    raises: bool,
) -> bool {
    // SAFETY: PostgreSQL's arguments are passed on; PREVIOUS is set once.
    unsafe {
        let allowed = PREVIOUS.is_none_or(|previous| previous(tables, permissions, raises));
        if allowed
            && let Some(table) = looked_up(tables, permissions)
            && J::may_mind(table)
        {
            J::begin(table);
        }
        allowed
    }
}

/// The table, if the check belongs to such a look-up: it asks for what SELECT FOR KEY SHARE
/// needs, by an entry that no parser has made, since that has no names of columns.
unsafe fn looked_up(tables: *mut List, permissions: *mut List) -> Option<Oid> {
    const ASKED: u64 = (pg_sys::ACL_SELECT | pg_sys::ACL_UPDATE) as u64;
    if lists::len(tables) != 1 || lists::len(permissions) != 1 {
        return None;
    }
    // SAFETY: PostgreSQL passes the statement's range table and permissions, valid until the hook returns.
    unsafe {
        let entry = &*lists::nth::<RangeTblEntry>(tables, 0)?;
        let asked = &*lists::nth::<RTEPermissionInfo>(permissions, 0)?;
        let is_one = entry.rtekind == RTEKind::RTE_RELATION
            && entry.eref.is_null()
            && entry.rellockmode == pg_sys::RowShareLock.cast_signed()
            && asked.requiredPerms == ASKED;
        is_one.then_some(entry.relid)
    }
}

/// The scan that comes next is judged by `by`. Guarded.
///
/// # Safety
/// The table is open and locked; what is pointed to stays until the scan has ended.
pub(crate) unsafe fn begin<T>(table: Oid, level: i32, by: &T) {
    // SAFETY: who opened the table keeps it open, so that the entry stays where it is.
    unsafe {
        let relation = pg_sys::RelationIdGetRelation(table);
        let own = own_of(relation);
        (*relation).rd_tableam = copy_of(own);
        let (fetch, by) = (null_mut(), core::ptr::from_ref(by).cast());
        let scan = FastPathScan {
            table,
            relation,
            own,
            fetch,
            level,
            by,
        };
        SCANS.with_borrow_mut(|all| all.push(scan));
        pg_sys::RelationClose(relation);
    }
}

/// Ends the scan at this place, and all within it.
fn end(at: usize) {
    SCANS.with_borrow_mut(|all| {
        while all.len() > at {
            let Some(ended) = all.pop() else { return };
            if all.iter().all(|scan| scan.relation != ended.relation) {
                // SAFETY: PostgreSQL closes the table after the scan, or after the callbacks at
                // the end of the transaction.
                unsafe { (*ended.relation).rd_tableam = ended.own };
            }
        }
    });
}

/// What has begun in a failed transaction of this nesting level, or a deeper one, is over. Raises no
/// error.
pub(crate) fn at_abort(level: i32) {
    let first = SCANS.with_borrow(|all| all.iter().position(|scan| scan.level >= level));
    if let Some(first) = first {
        end(first);
    }
}

/// The table of a look-up that has not gone as described above. There is none at the end of a
/// transaction, unless this version of PostgreSQL works in another way.
pub(crate) fn unfinished() -> Option<Oid> {
    SCANS.with_borrow(|all| all.first().map(|scan| scan.table))
}

/// A query has ended, which may have been run by the cast of a key: where a subtransaction has failed
/// before, it may have made the entry of a running look-up's table anew.
pub(crate) fn after_query() {
    if SCANS.with_borrow(|all| !all.is_empty()) {
        put_back(pg_sys::InvalidOid);
    }
}

/// PostgreSQL has made the table's entry anew, with its own access method.
fn put_back(relid: Oid) {
    SCANS.with_borrow_mut(|all| {
        for scan in all {
            if relid == scan.table || relid == pg_sys::InvalidOid {
                // SAFETY: PostgreSQL has opened the relation, and closes it after the scan.
                unsafe {
                    scan.own = own_of(scan.relation);
                    if let Some(copy) = known(scan.own) {
                        (*scan.relation).rd_tableam = copy;
                    }
                }
            }
        }
    });
}

fn known(own: *const TableAmRoutine) -> Option<*const TableAmRoutine> {
    COPIES.with_borrow(|all| all.iter().find(|&&(its, _)| its == own).map(|&(_, it)| it))
}

/// The table's own access method.
unsafe fn own_of(relation: Relation) -> *const TableAmRoutine {
    // SAFETY: PostgreSQL has opened the relation, and closes it after the scan.
    let present = unsafe { (*relation).rd_tableam };
    COPIES.with_borrow(|all| {
        let copied = all.iter().find(|&&(_, it)| it == present);
        copied.map_or(present, |&(its, _)| its)
    })
}

/// The copy of the access method, made once.
unsafe fn copy_of(own: *const TableAmRoutine) -> *const TableAmRoutine {
    if let Some(known) = known(own) {
        return known;
    }
    // SAFETY: PostgreSQL's table access methods are complete and constant.
    let mut copy = unsafe { *own };
    copy.index_fetch_begin = Some(index_fetch_begin);
    copy.index_fetch_end = Some(index_fetch_end);
    copy.tuple_lock = Some(tuple_lock);
    let copy: *const TableAmRoutine = Box::leak(Box::new(copy));
    COPIES.with_borrow_mut(|all| all.push((own, copy)));
    copy
}

unsafe extern "C-unwind" fn index_fetch_begin(
    relation: Relation,
    flags: u32,
) -> *mut IndexFetchTableData {
    // SAFETY: PostgreSQL's arguments are passed on; an access method has all functions.
    unsafe {
        let Some(begin) = (*own_of(relation)).index_fetch_begin else {
            return null_mut();
        };
        let fetch = begin(relation, flags);
        SCANS.with_borrow_mut(|all| {
            if let Some(scan) = all.last_mut()
                && scan.relation == relation
                && scan.fetch.is_null()
            {
                scan.fetch = fetch;
            }
        });
        fetch
    }
}

unsafe extern "C-unwind" fn index_fetch_end(fetch: *mut IndexFetchTableData) {
    // SAFETY: the arguments are those that PostgreSQL passes for this access method.
    unsafe {
        let its_end = (*own_of((*fetch).rel)).index_fetch_end;
        let ended = SCANS.with_borrow(|all| all.iter().position(|scan| scan.fetch == fetch));
        if let Some(ended) = ended {
            end(ended);
        }
        if let Some(its_end) = its_end {
            its_end(fetch);
        }
    }
}

unsafe extern "C-unwind" fn tuple_lock(
    relation: Relation,
    tid: pg_sys::ItemPointer,
    snapshot: pg_sys::Snapshot,
    slot: *mut pg_sys::TupleTableSlot,
    command: pg_sys::CommandId,
    mode: LockTupleMode::Type,
    wait: LockWaitPolicy::Type,
    flags: u8,
    failure: *mut pg_sys::TM_FailureData,
) -> TM_Result::Type {
    // SAFETY: the arguments are those that PostgreSQL passes for this access method.
    unsafe {
        let Some(lock) = (*own_of(relation)).tuple_lock else {
            return TM_Result::TM_Invisible;
        };
        let scan = SCANS.with_borrow(|all| all.last().copied());
        let scan = scan.filter(|scan| scan.relation == relation && !scan.fetch.is_null());
        let scan = scan.filter(|_| mode == LockTupleMode::LockTupleKeyShare);
        let is_hidden = |has_waited| {
            scan.zip(IS_HIDDEN).is_some_and(|(scan, is_hidden)| {
                is_hidden(scan.by, Slot::of(slot, Table::of(relation)), has_waited)
            })
        };
        // To PostgreSQL, such a row is none: "updated or deleted by the current command".
        if is_hidden(false) {
            return TM_Result::TM_SelfModified;
        }
        let result = lock(
            relation, tid, snapshot, slot, command, mode, wait, flags, failure,
        );
        if result == TM_Result::TM_Ok && (*failure).traversed && is_hidden(true) {
            return TM_Result::TM_SelfModified;
        }
        result
    }
}

//! Versions of rows of heap tables, by their TIDs.

use super::table::{Slot, Table};
use pgrx::pg_sys;

/// A table, and a TID in it.
pub(crate) type Version = (pg_sys::Oid, u32, u16);

/// The version with this TID, if the present transaction has written it. `None` also if there is
/// none, or the table is no heap. Raises if there is no such table.
pub(crate) fn written_here(relid: pg_sys::Oid, tid: pg_sys::ItemPointerData) -> Option<Version> {
    let mut found = None;
    each_from(relid, tid, |version, header| {
        // SAFETY: reads variables that only this process writes.
        let own = unsafe { pg_sys::TransactionIdIsCurrentTransactionId(xmin(header)) };
        found = own.then_some(version);
        false
    });
    found
}

/// Whether the present transaction has locked the row whose version has this TID, and not
/// updated it since: a new version takes the locks along. False if there is none, or the table
/// is no heap.
///
/// # Safety
/// Within a transaction; raises if there is no such table.
pub(crate) unsafe fn is_locked_here(relid: pg_sys::Oid, tid: pg_sys::ItemPointerData) -> bool {
    let mut found = false;
    each_from(relid, tid, |_, header| {
        // SAFETY: the slot pins the page that the header is on.
        found = unsafe { is_locked_by_us(header) };
        false
    });
    found
}

/// # Safety
/// A header in a buffer that is pinned.
unsafe fn is_locked_by_us(header: &pg_sys::HeapTupleHeaderData) -> bool {
    let mask = u32::from(header.t_infomask);
    // SAFETY: on disk it is always this variant; the rest reads backend-local variables.
    unsafe {
        let xmax = header.t_choice.t_heap.t_xmax;
        let is_ours = |xid| pg_sys::TransactionIdIsCurrentTransactionId(xid);
        if mask & pg_sys::HEAP_XMAX_INVALID != 0
            || mask & pg_sys::HEAP_UPDATED != 0 && is_ours(xmin(header))
        {
            return false;
        }
        if mask & pg_sys::HEAP_XMAX_IS_MULTI == 0 {
            let locks = pg_sys::HEAP_XMAX_LOCK_ONLY;
            return mask & locks != 0 && is_ours(xmax);
        }
        let mut members = core::ptr::null_mut();
        let only_locks = mask & pg_sys::HEAP_XMAX_LOCK_ONLY != 0;
        let count = pg_sys::GetMultiXactIdMembers(xmax, &mut members, false, only_locks);
        (0..usize::try_from(count).unwrap_or(0)).any(|at| is_ours((*members.add(at)).xid))
    }
}

/// The version with this TID, and those that the present transaction has made of it.
/// Otherwise as [`written_here`].
pub(crate) fn from(relid: pg_sys::Oid, tid: pg_sys::ItemPointerData) -> Vec<Version> {
    let mut found = Vec::new();
    each_from(relid, tid, |version, _| {
        found.push(version);
        true
    });
    found
}

/// Calls `take` for the version with this TID and its successors in the present transaction,
/// while it returns true.
fn each_from(
    relid: pg_sys::Oid,
    mut tid: pg_sys::ItemPointerData,
    mut take: impl FnMut(Version, &pg_sys::HeapTupleHeaderData) -> bool,
) {
    let share = pg_sys::AccessShareLock.cast_signed();
    // SAFETY: table and slot are open while they are used; the slot of a heap table
    // holds a heap tuple.
    unsafe {
        let table = pg_sys::table_open(relid, share);
        let slot = pg_sys::table_slot_create(table, core::ptr::null_mut());
        let row = Slot::of(slot, Table::of(table));
        let class = (*table).rd_rel;
        // From PostgreSQL 17 on a partitioned table can have an access method, too.
        let is_heap = (*class).relkind.cast_unsigned() == pg_sys::RELKIND_RELATION
            && (*class).relam == pg_sys::HEAP_TABLE_AM_OID;
        let mut writer = None;
        while is_heap && at_boundary!(row.fetch(&mut tid)) {
            let header = (*(*slot.cast::<pg_sys::HeapTupleTableSlot>()).tuple).t_data;
            // A TID that was freed may hold another row by now.
            if writer.is_some_and(|writer| writer != xmin(&*header))
                || !take((relid, block(&tid), tid.ip_posid), &*header)
            {
                break;
            }
            let Some((xid, next)) = successor(header, &tid) else {
                break;
            };
            (writer, tid) = (Some(xid), next);
        }
        pg_sys::ExecDropSingleTupleTableSlot(slot);
        pg_sys::table_close(table, share);
    }
}

/// The transaction that wrote the version.
fn xmin(header: &pg_sys::HeapTupleHeaderData) -> pg_sys::TransactionId {
    // SAFETY: a row on disk always has the heap's variant of the union.
    unsafe { header.t_choice.t_heap.t_xmin }
}

/// The (sub)transaction that has updated this version, if it is one of the present, and the TID
/// of the new version.
///
/// # Safety
/// A header in a buffer that is pinned.
unsafe fn successor(
    header: *mut pg_sys::HeapTupleHeaderData,
    tid: &pg_sys::ItemPointerData,
) -> Option<(pg_sys::TransactionId, pg_sys::ItemPointerData)> {
    // SAFETY: as required of the caller; the rest reads backend-local variables.
    unsafe {
        let (mask, next) = (u32::from((*header).t_infomask), (*header).t_ctid);
        if mask & (pg_sys::HEAP_XMAX_INVALID | pg_sys::HEAP_XMAX_LOCK_ONLY) != 0
            || (block(&next), next.ip_posid) == (block(tid), tid.ip_posid)
        {
            return None;
        }
        let xid = if mask & pg_sys::HEAP_XMAX_IS_MULTI != 0 {
            pg_sys::HeapTupleGetUpdateXid(header)
        } else {
            (*header).t_choice.t_heap.t_xmax
        };
        pg_sys::TransactionIdIsCurrentTransactionId(xid).then_some((xid, next))
    }
}

fn block(tid: &pg_sys::ItemPointerData) -> u32 {
    u32::from(tid.ip_blkid.bi_hi) << 16 | u32::from(tid.ip_blkid.bi_lo)
}

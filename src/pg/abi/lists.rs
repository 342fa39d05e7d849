//! Walking and growing PostgreSQL's `List`.

use core::ffi::CStr;
use pgrx::pg_sys;

/// The pointers of a list of nodes, in order. `NIL` is empty.
///
/// # Safety
/// `list` is `NIL` or a valid pointer list that is not changed meanwhile, and
/// its cells point to values of type `T`.
pub(crate) unsafe fn iter<T>(list: *mut pg_sys::List) -> impl DoubleEndedIterator<Item = *mut T> {
    // SAFETY: a non-NIL list has `length` cells in `elements`.
    (0..len(list)).map(move |i| unsafe { (*(*list).elements.add(i)).ptr_value.cast::<T>() })
}

/// The OIDs of an OID list, in order.
///
/// # Safety
/// As [`iter`], for a list of OIDs.
pub(crate) unsafe fn oids(list: *mut pg_sys::List) -> impl Iterator<Item = pg_sys::Oid> {
    // SAFETY: as in `iter`: the list has `len` elements of this kind.
    (0..len(list)).map(move |i| unsafe { (*(*list).elements.add(i)).oid_value })
}

pub(crate) fn len(list: *mut pg_sys::List) -> usize {
    // SAFETY: NIL is a null pointer; anything else is a List header.
    unsafe { list.as_ref() }.map_or(0, |l| usize::try_from(l.length).unwrap_or(0))
}

/// The names in a list of String nodes, in order.
///
/// # Safety
/// As [`iter`]; the list stays for `'a`.
pub(crate) unsafe fn names<'a>(list: *mut pg_sys::List) -> impl Iterator<Item = &'a CStr> {
    // SAFETY: as required of the caller; each has a C string.
    unsafe { iter::<pg_sys::String>(list).map(|node| CStr::from_ptr((*node).sval)) }
}

/// Makes a list of these nodes, in the current memory context.
///
/// # Safety
/// The pointers are nodes that live as long as the list.
pub(crate) unsafe fn of<T>(nodes: &[*mut T]) -> *mut pg_sys::List {
    // SAFETY: lappend allocates in CurrentMemoryContext.
    nodes
        .iter()
        .fold(core::ptr::null_mut(), |list, &node| unsafe {
            pg_sys::lappend(list, node.cast())
        })
}

/// Removes the other nodes from the list, in place.
///
/// # Safety
/// As [`iter`]; nothing else refers to the list.
pub(crate) unsafe fn retain<T>(
    list: *mut pg_sys::List,
    mut keep: impl FnMut(&mut T) -> bool,
) -> *mut pg_sys::List {
    // SAFETY: as required of the caller; what is written is within the former length. A
    // list has no cells only if it is NIL.
    unsafe {
        let mut kept = 0;
        for i in 0..len(list) {
            let cell = *(*list).elements.add(i);
            if keep(&mut *cell.ptr_value.cast::<T>()) {
                *(*list).elements.add(kept) = cell;
                kept += 1;
            }
        }
        if kept == 0 {
            return core::ptr::null_mut();
        }
        (*list).length = kept as i32;
        list
    }
}

/// The numbers of the entries of the range table that a plan writes to, from 1. Calls no
/// function of PostgreSQL.
///
/// # Safety
/// A complete plan, which stays as long as the iterator.
pub(crate) unsafe fn targets(plan: &pg_sys::PlannedStmt) -> impl Iterator<Item = i32> + use<> {
    #[cfg(not(since19))]
    {
        let list = plan.resultRelations;
        // SAFETY: as in `iter`: the list has `len` elements of this kind.
        (0..len(list)).map(move |i| unsafe { (*(*list).elements.add(i)).int_value })
    }
    #[cfg(since19)]
    {
        let set = plan.resultRelationRelids;
        // SAFETY: a Bitmapset is null or a valid set.
        let count = unsafe { set.as_ref() }.map_or(0, |set| set.nwords);
        (0..count * 64).filter(move |at| {
            // SAFETY: a set has `nwords` words of 64 bits.
            let word = unsafe {
                *(&raw const (*set).words)
                    .cast::<u64>()
                    .add(*at as usize / 64)
            };
            word >> (at % 64) & 1 == 1
        })
    }
}

/// The pointer at this index of a list of nodes.
///
/// # Safety
/// As [`iter`].
pub(crate) unsafe fn nth<T>(list: *mut pg_sys::List, index: i32) -> Option<*mut T> {
    let index = usize::try_from(index).ok().filter(|&i| i < len(list))?;
    // SAFETY: as in `iter`: the list has `len` elements of this kind.
    Some(unsafe { (*(*list).elements.add(index)).ptr_value.cast::<T>() })
}

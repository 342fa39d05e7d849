//! Whether a B-tree has an entry for a key at all: one descent, and no scan.
//!
//! Unguarded, as [`super::unguarded`]. PostgreSQL's functions and structs are those of nbtree.h,
//! which pgrx does not bind; what is used of them is the same in 15 to 18 but for one signature.

#![allow(ffi_unwind_calls, reason = "PostgreSQL's own longjmp passes")]

use super::scan::{Index, Part, Values};
use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use pgrx::pg_sys::{self, Buffer, FmgrInfo, ItemPointerData, Page, Relation, ScanKeyData};

/// `BTScanInsertData`. The last flag is `pivotsearch`, from 17 on `backward`.
#[repr(C)]
struct Sought {
    heapkeyspace: bool,
    allequalimage: bool,
    anynullkeys: bool,
    nextkey: bool,
    last_flag: bool,
    scantid: *mut ItemPointerData,
    keysz: c_int,
    scankeys: [MaybeUninit<ScanKeyData>; pg_sys::INDEX_MAX_KEYS as usize],
}

/// `BTPageOpaqueData`
#[repr(C)]
struct Opaque {
    previous: u32,
    next: u32,
    level: u32,
    flags: u16,
    cycle: u16,
}

/// `BTORDER_PROC`
const ORDER: u16 = 1;
/// `BT_READ`
const READ: c_int = 1;
/// `SK_BT_INDOPTION_SHIFT`
const OPTION_SHIFT: u32 = 24;
/// `P_HIKEY`: the high key, and on the rightmost page, which has none, the first item.
const FIRST: u16 = 1;
/// `BTP_LEAF`
const LEAF: u16 = 1;
/// `BTP_ROOT`
const ROOT: u16 = 1 << 1;
/// `P_IGNORE`: the page is deleted, or half so.
const IGNORE: u16 = 1 << 2 | 1 << 4;

unsafe extern "C-unwind" {
    fn _bt_metaversion(index: Relation, heapkeyspace: *mut bool, allequalimage: *mut bool);
    fn _bt_search(
        index: Relation,
        #[cfg(since16)] table: Relation,
        key: *mut Sought,
        buffer: *mut Buffer,
        access: c_int,
        #[cfg(not(since17))] snapshot: pg_sys::Snapshot,
    ) -> *mut core::ffi::c_void;
    fn _bt_getbuf(index: Relation, block: pg_sys::BlockNumber, access: c_int) -> Buffer;
    fn BufferGetBlockNumber(buffer: Buffer) -> pg_sys::BlockNumber;
    fn _bt_freestack(stack: *mut core::ffi::c_void);
    fn _bt_relbuf(index: Relation, buffer: Buffer);
    fn _bt_compare(index: Relation, key: *mut Sought, page: Page, at: u16) -> i32;
    fn index_getprocinfo(index: Relation, column: i16, function: u16) -> *mut FmgrInfo;
    fn ScanKeyEntryInitializeWithInfo(
        entry: *mut ScanKeyData,
        flags: c_int,
        column: i16,
        strategy: u16,
        subtype: pg_sys::Oid,
        collation: pg_sys::Oid,
        function: *mut FmgrInfo,
        argument: pg_sys::Datum,
    );
}

impl Index<'_> {
    /// Whether no row has this key, dead ones included. False where a closer look is needed: a row
    /// may have it, or a part of it is NULL.
    ///
    /// The descent is that of PostgreSQL's check for uniqueness (`_bt_doinsert`).
    ///
    /// # Safety
    /// A B-tree; the parts are all columns of its key, in order, with their values.
    pub(crate) unsafe fn lacks(self, parts: &[Part], key: &Values) -> bool {
        let (index, mut buffer) = (self.as_ptr(), 0);
        let mut sought = Sought {
            heapkeyspace: false,
            allequalimage: false,
            anynullkeys: false,
            nextkey: false,
            last_flag: false,
            scantid: null_mut(),
            keysz: parts.len() as c_int,
            scankeys: [const { MaybeUninit::uninit() }; pg_sys::INDEX_MAX_KEYS as usize],
        };
        // SAFETY: as required of the caller. The page stays locked until it is released; an error of
        // a comparison releases it, too.
        unsafe {
            let (keyspace, equal) = (&mut sought.heapkeyspace, &mut sought.allequalimage);
            _bt_metaversion(index, keyspace, equal);
            for (at, part) in parts.iter().enumerate() {
                let (Some(value), Some(entry)) = (key.get(at), sought.scankeys.get_mut(at)) else {
                    return false;
                };
                let column = at as i16 + 1;
                let flags = i32::from(*(*index).rd_indoption.add(at)) << OPTION_SHIFT;
                let function = index_getprocinfo(index, column, ORDER);
                let (any, collation) = (pg_sys::InvalidOid, part.collation);
                let entry = entry.as_mut_ptr();
                ScanKeyEntryInitializeWithInfo(
                    entry, flags, column, 0, any, collation, function, value,
                );
            }
            if let Some(lacks) = by_last_leaf(index, &mut sought) {
                return lacks;
            }
            let stack = _bt_search(
                index,
                #[cfg(since16)]
                self.table().as_ptr(),
                &mut sought,
                &mut buffer,
                READ,
                #[cfg(not(since17))]
                null_mut(),
            );
            _bt_freestack(stack);
            if buffer == 0 {
                // The index is empty.
                return true;
            }
            let leaf = Leaf::of(buffer);
            // As PostgreSQL, which does so for no root.
            if leaf.is_rightmost() && leaf.flags() & ROOT == 0 {
                set_target(index, BufferGetBlockNumber(buffer));
            }
            let lacks = leaf.lacks(index, &mut sought);
            _bt_relbuf(index, buffer);
            lacks
        }
    }
}

/// The answer by the rightmost leaf, if the session knows where that is and the key is after its first
/// one; so it is for keys of a sequence. PostgreSQL's insertion does the same, by the same knowledge, which it has of
/// larger indexes only (`_bt_search_insert`).
///
/// # Safety
/// As [`Index::lacks`].
unsafe fn by_last_leaf(index: Relation, sought: &mut Sought) -> Option<bool> {
    // SAFETY: as required of the caller; what is known is only a guess, and is verified.
    unsafe {
        let target = (*index).rd_smgr.as_ref()?.smgr_targblock;
        if target == pg_sys::InvalidBlockNumber {
            return None;
        }
        let buffer = _bt_getbuf(index, target, READ);
        let leaf = Leaf::of(buffer);
        let is_there = leaf.is_rightmost()
            && leaf.flags() & (LEAF | IGNORE) == LEAF
            && leaf.items > 0
            && _bt_compare(index, sought, leaf.page, FIRST) > 0;
        let lacks = is_there.then(|| leaf.lacks(index, sought));
        _bt_relbuf(index, buffer);
        if lacks.is_none() {
            set_target(index, pg_sys::InvalidBlockNumber);
        }
        lacks
    }
}

/// `RelationSetTargetBlock`
///
/// # Safety
/// An open index, of which a page was read.
unsafe fn set_target(index: Relation, block: pg_sys::BlockNumber) {
    // SAFETY: as required of the caller.
    if let Some(storage) = unsafe { (*index).rd_smgr.as_mut() } {
        storage.smgr_targblock = block;
    }
}

/// A page of a B-tree that is pinned and locked.
#[derive(Clone, Copy)]
struct Leaf {
    page: Page,
    items: u16,
    opaque: *const Opaque,
}

impl Leaf {
    /// # Safety
    /// The page stays locked as long as this is used.
    unsafe fn of(buffer: Buffer) -> Self {
        // SAFETY: as required of the caller: a page with its header and special space.
        unsafe {
            let page = pg_sys::BufferGetPage(buffer);
            let header = &*page.cast::<pg_sys::PageHeaderData>();
            let items =
                usize::from(header.pd_lower).saturating_sub(size_of::<pg_sys::PageHeaderData>());
            Self {
                page,
                items: (items / size_of::<pg_sys::ItemIdData>()) as u16,
                opaque: page.add(header.pd_special.into()).cast(),
            }
        }
    }

    fn is_rightmost(self) -> bool {
        // SAFETY: the page is locked.
        unsafe { (*self.opaque).next == 0 }
    }

    fn flags(self) -> u16 {
        // SAFETY: the page is locked.
        unsafe { (*self.opaque).flags }
    }

    /// Whether the leaf, on which entries of the key begin if there are any, has none, nor the page
    /// after it.
    ///
    /// # Safety
    /// A leaf of that index.
    unsafe fn lacks(self, index: Relation, sought: &mut Sought) -> bool {
        // SAFETY: as required of the caller.
        let mut compare = |at| unsafe { _bt_compare(index, sought, self.page, at) };
        let is_rightmost = self.is_rightmost();
        let (mut low, mut high) = (if is_rightmost { 1 } else { 2 }, self.items + 1);
        // A sequence's next one is after the last.
        if is_rightmost && self.items > 0 {
            match compare(self.items) {
                0 => return false,
                1.. => return true,
                _ => high = self.items,
            }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            match compare(middle) {
                0 => return false,
                1.. => low = middle + 1,
                _ => high = middle,
            }
        }
        low <= self.items || is_rightmost || compare(FIRST) < 0
    }
}

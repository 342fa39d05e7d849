//! BRIN indexes: which blocks their summaries lead to, and making summaries anew.

use super::{query, relation};
use crate::pg::session::gate::Visit;
use core::ffi::c_int;
use core::ptr::null_mut;
use pgrx::pg_sys::{self, BlockNumber, Oid};

/// Blocks of a table, from the first to before the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Blocks {
    pub(crate) from: BlockNumber,
    pub(crate) to: BlockNumber,
}

/// Where an index leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Led {
    /// In ascending order, as long as can be.
    pub(crate) to: Vec<Blocks>,
    /// How many blocks a summary is of.
    pub(crate) range: BlockNumber,
    /// How many blocks the table has.
    pub(crate) table: BlockNumber,
}

impl Led {
    /// How many blocks it leads to.
    pub(crate) fn count(&self) -> u64 {
        let blocks = self.to.iter();
        blocks.map(|it| u64::from(it.to - it.from)).sum()
    }

    /// Whether it leads to this block.
    pub(crate) fn is_to(&self, block: BlockNumber) -> bool {
        let at = self.to.partition_point(|it| it.to <= block);
        self.to.get(at).is_some_and(|it| it.from <= block)
    }
}

/// Where an index of the table leads whose first column is a timestamptz, from `first` to `last`:
/// to all blocks with such a row, to those that are not summarised, and to others. `None` if there
/// is no such index any more. The table is locked.
///
/// No user-defined code runs: only superusers can create operator classes.
pub(crate) fn lead(table: &relation::Open, index: Oid, (first, last): (i64, i64)) -> Option<Led> {
    let share = pg_sys::AccessShareLock.cast_signed();
    // SAFETY: the index is looked at before it is opened, and locked until the transaction ends;
    // the keys are for its first column.
    unsafe {
        if !pg_sys::ConditionalLockRelationOid(index, share)
            || pg_sys::IndexGetRelation(index, true) != (*table.as_ptr()).rd_id
        {
            return None;
        }
        let index = pg_sys::index_open(index, pg_sys::NoLock.cast_signed());
        let is_fit = (*(*index).rd_rel).relam == pg_sys::BRIN_AM_OID
            && (*(*index).rd_index).indisvalid
            && *(*index).rd_opcintype == pg_sys::TIMESTAMPTZOID;
        let led = is_fit.then(|| Led {
            to: scan(index, (first, last)),
            range: pages_per_range(index),
            table: table.blocks(),
        });
        pg_sys::index_close(index, pg_sys::NoLock.cast_signed());
        led
    }
}

/// # Safety
/// An open BRIN index whose first column is a timestamptz.
unsafe fn scan(index: pg_sys::Relation, (first, last): (i64, i64)) -> Vec<Blocks> {
    const MEMORY: usize = 4 << 20;
    let bounds = [
        (
            pg_sys::BTLessEqualStrategyNumber,
            pg_sys::F_TIMESTAMPTZ_LE,
            last,
        ),
        (
            pg_sys::BTGreaterEqualStrategyNumber,
            pg_sys::F_TIMESTAMPTZ_GE,
            first,
        ),
    ];
    // From the earliest on there is nothing to compare.
    let count = if first == i64::MIN { 1 } else { 2 };
    let mut keys = [pg_sys::ScanKeyData::default(); 2];
    // BRIN reads its own pages, whatever the snapshot.
    let mut dirty = pg_sys::SnapshotData {
        snapshot_type: pg_sys::SnapshotType::SNAPSHOT_DIRTY,
        ..Default::default()
    };
    // SAFETY: as required of the caller; the bitmap has no more than whole pages.
    unsafe {
        for (key, (strategy, procedure, value)) in keys.iter_mut().zip(bounds) {
            // Operator classes of BRIN look up the operator by the type on its right.
            pg_sys::ScanKeyEntryInitialize(
                key,
                0,
                1,
                strategy as u16,
                pg_sys::TIMESTAMPTZOID,
                pg_sys::InvalidOid,
                procedure.into(),
                value.into(),
            );
        }
        let bitmap = pg_sys::tbm_create(MEMORY as _, null_mut());
        #[cfg(not(since18))]
        let scan = pg_sys::index_beginscan_bitmap(index, &mut dirty, count);
        #[cfg(since18)]
        let scan = pg_sys::index_beginscan_bitmap(index, &mut dirty, null_mut(), count);
        pg_sys::index_rescan(scan, keys.as_mut_ptr(), count, null_mut(), 0);
        pg_sys::index_getbitmap(scan, bitmap);
        pg_sys::index_endscan(scan);
        let mut found: Vec<Blocks> = Vec::new();
        each_page(bitmap, &mut |block| match found.last_mut() {
            Some(last) if last.to == block => last.to = block + 1,
            _ => found.push(Blocks {
                from: block,
                to: block + 1,
            }),
        });
        pg_sys::tbm_free(bitmap);
        found
    }
}

/// Calls `see` with the pages in ascending order.
///
/// # Safety
/// A bitmap over which no scan iterates.
unsafe fn each_page(bitmap: *mut pg_sys::TIDBitmap, see: &mut dyn FnMut(BlockNumber)) {
    // SAFETY: as required of the caller.
    unsafe {
        #[cfg(not(since18))]
        {
            let iterator = pg_sys::tbm_begin_iterate(bitmap);
            loop {
                let page = pg_sys::tbm_iterate(iterator);
                if page.is_null() {
                    break;
                }
                see((*page).blockno);
            }
            pg_sys::tbm_end_iterate(iterator);
        }
        #[cfg(since18)]
        {
            let iterator = pg_sys::tbm_begin_private_iterate(bitmap);
            let mut page = pg_sys::TBMIterateResult::default();
            while pg_sys::tbm_private_iterate(iterator, &mut page) {
                see(page.blockno);
            }
            pg_sys::tbm_end_private_iterate(iterator);
        }
    }
}

/// brin.h, which pgrx does not bind.
#[repr(C)]
#[derive(Default)]
struct BrinStatsData {
    pages_per_range: BlockNumber,
    revmap_pages: BlockNumber,
}

unsafe extern "C-unwind" {
    /// brin.c
    #[allow(non_snake_case, reason = "PostgreSQL's name")]
    fn brinGetStats(index: pg_sys::Relation, stats: *mut BrinStatsData);
}

/// How many blocks a summary is of, as the index was built.
///
/// # Safety
/// An open BRIN index.
unsafe fn pages_per_range(index: pg_sys::Relation) -> BlockNumber {
    let mut stats = BrinStatsData::default();
    // SAFETY: as required of the caller.
    unsafe { at_boundary!(brinGetStats(index, &raw mut stats)) };
    stats.pages_per_range.max(1)
}

/// Whether an operator class compares timestamptz in the usual order.
pub(crate) fn compares_timestamps(class: Oid) -> bool {
    let at_most = pg_sys::BTLessEqualStrategyNumber as c_int as i16;
    let type_oid = pg_sys::TIMESTAMPTZOID;
    // SAFETY: syscache look-ups.
    unsafe {
        let family = pg_sys::get_opclass_family(class);
        let operator = pg_sys::get_opfamily_member(family, type_oid, type_oid, at_most);
        operator != pg_sys::InvalidOid
            && pg_sys::get_opcode(operator) == pg_sys::F_TIMESTAMPTZ_LE.into()
    }
}

/// Summarises the range of a BRIN index that begins with this block, if it is not summarised; with
/// `anew`, also if it is. By PostgreSQL's functions, as the table's owner, who must hold a lock
/// on the table that conflicts with itself.
///
/// Rows that are dead to everybody no longer count then, whether VACUUM has been there or not.
pub(crate) fn summarise(visit: &Visit, index: Oid, block: BlockNumber, anew: bool) {
    let index = index.to_u32();
    let call = |name: &str| {
        let sql = format!("SELECT pg_catalog.{name}({index}::pg_catalog.oid, {block})");
        query::execute(visit, &sql, &[]);
    };
    if anew {
        call("brin_desummarize_range");
    }
    call("brin_summarize_range");
}

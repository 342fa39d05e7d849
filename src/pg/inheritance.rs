//! Who inherits from whom: partitions, and tables made by INHERITS.
//!
//! Anybody may make a tree as deep as there are tables, and one whose levels inherit twice
//! from the level above, so that 2ⁿ ways lead to its root. So nothing here recurses, each
//! relation is looked at once, and every walk can be cancelled.

use super::catalog::class;
use super::externs::raising;
use super::lists;
use pgrx::pg_sys;
use rustc_hash::{FxHashMap, FxHashSet};

/// The relation and all that inherit from it, partitions included, at any depth; those
/// that are nearer to it first.
pub(crate) fn all_inheritors(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    all_inheritors_of([relid])
}

/// These relations and all that inherit from them, each once.
pub(crate) fn all_inheritors_of(relids: impl IntoIterator<Item = pg_sys::Oid>) -> Vec<pg_sys::Oid> {
    let mut found: Vec<pg_sys::Oid> = relids.into_iter().collect();
    let mut known: FxHashSet<pg_sys::Oid> = found.iter().copied().collect();
    let mut next = 0;
    while let Some(&relid) = found.get(next) {
        pgrx::check_for_interrupts!();
        let new = children(relid)
            .into_iter()
            .filter(|&child| known.insert(child));
        found.extend(new);
        next += 1;
    }
    found
}

/// What inherits from the relation directly, in the order of OIDs.
fn children(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    // Not locked: it may have been dropped meanwhile.
    if class(relid).is_none() {
        return vec![];
    }
    let no_lock = pg_sys::NoLock.cast_signed();
    // SAFETY: a look-up within a transaction; the list is copied before it is left to the
    // memory context.
    unsafe {
        let list = at_boundary!(raising::find_inheritance_children(relid, no_lock));
        lists::oids(list).collect()
    }
}

/// Whether the relation has partitions or heirs, or once had.
pub(crate) fn has_subclass(relid: pg_sys::Oid) -> bool {
    // SAFETY: a syscache look-up within a transaction; the relation exists.
    unsafe { at_boundary!(raising::has_subclass(relid)) }
}

/// All relations that the relation inherits from, at any distance, each once.
pub(crate) fn ancestors(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let mut found = vec![relid];
    let mut known: FxHashSet<pg_sys::Oid> = found.iter().copied().collect();
    let mut next = 0;
    while let Some(&relid) = found.get(next) {
        pgrx::check_for_interrupts!();
        let new = parents_of(relid)
            .into_iter()
            .filter(|&parent| known.insert(parent));
        found.extend(new);
        next += 1;
    }
    found.remove(0);
    found
}

/// For relations: the topmost ancestor for which something holds.
pub(crate) type Topmost = FxHashMap<pg_sys::Oid, Option<pg_sys::Oid>>;

/// A relation whose ancestors are being looked at.
struct Step {
    relid: pg_sys::Oid,
    parents: std::vec::IntoIter<pg_sys::Oid>,
}

impl Step {
    fn of(relid: pg_sys::Oid) -> Self {
        let parents = parents_of(relid).into_iter();
        Self { relid, parents }
    }
}

/// The topmost of the relation and its ancestors for which `holds` is true. With several
/// parents, the first one counts under which one is found, in the order of INHERITS.
///
/// `known` are answers that are asked for again, by the relation; what is found on the way
/// is added to `found`.
pub(crate) fn topmost(
    relid: pg_sys::Oid,
    known: impl Fn(pg_sys::Oid) -> Option<Option<pg_sys::Oid>>,
    found: &mut Topmost,
    mut holds: impl FnMut(pg_sys::Oid) -> bool,
) -> Option<pg_sys::Oid> {
    let mut answer = None;
    let mut entered = FxHashSet::from_iter([relid]);
    let mut path = vec![Step::of(relid)];
    while let Some(step) = path.last_mut() {
        pgrx::check_for_interrupts!();
        if answer.is_none() {
            if let Some(parent) = step.parents.next() {
                if let Some(before) = found.get(&parent).copied().or_else(|| known(parent)) {
                    answer = before;
                } else if entered.insert(parent) {
                    path.push(Step::of(parent));
                }
                continue;
            }
            answer = holds(step.relid).then_some(step.relid);
        }
        found.insert(step.relid, answer);
        path.pop();
    }
    answer
}

fn parents_of(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    class(relid).map_or(vec![], |class| parents(relid, class.is_partition))
}

/// The direct parents: the one of a partition, those of an inheriting table in
/// the order of its INHERITS clause.
pub(crate) fn parents(relid: pg_sys::Oid, is_partition: bool) -> Vec<pg_sys::Oid> {
    if is_partition {
        // SAFETY: the relation is a partition; a detached one yields InvalidOid.
        let parent = unsafe { at_boundary!(raising::get_partition_parent(relid, true)) };
        return if parent == pg_sys::InvalidOid {
            vec![]
        } else {
            vec![parent]
        };
    }
    inherits_parents(relid)
}

/// catalog/pg_inherits.h, which pgrx does not bind.
mod pg_inherits {
    use pgrx::pg_sys::Oid;

    pub(super) const RELATION: Oid = Oid::from_u32(2611);
    pub(super) const RELID_SEQNO_INDEX: Oid = Oid::from_u32(2680);
    pub(super) const INHRELID: i16 = 1;

    #[repr(C)]
    pub(super) struct Row {
        pub(super) inhrelid: Oid,
        pub(super) inhparent: Oid,
        pub(super) inhseqno: i32,
        pub(super) inhdetachpending: bool,
    }
}

/// Reads pg_inherits, whose index (inhrelid, inhseqno) gives the order.
fn inherits_parents(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let mut parents = Vec::new();
    // SAFETY: a systable scan over a locked catalog, closed before return; the
    // key's function is oideq, of which F_OIDEQ is the OID.
    unsafe {
        let access_share = pg_sys::AccessShareLock.cast_signed();
        let rel = pg_sys::table_open(pg_inherits::RELATION, access_share);
        let mut key = pg_sys::ScanKeyData::default();
        pg_sys::ScanKeyInit(
            &mut key,
            pg_inherits::INHRELID,
            pg_sys::BTEqualStrategyNumber as u16,
            pg_sys::Oid::from(pg_sys::F_OIDEQ),
            pg_sys::Datum::from(relid),
        );
        let index = pg_inherits::RELID_SEQNO_INDEX;
        let scan = pg_sys::systable_beginscan(rel, index, true, core::ptr::null_mut(), 1, &mut key);
        loop {
            let tuple = pg_sys::systable_getnext(scan);
            if tuple.is_null() {
                break;
            }
            parents.push((*pg_sys::GETSTRUCT(tuple).cast::<pg_inherits::Row>()).inhparent);
        }
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(rel, access_share);
    }
    parents
}

//! Who inherits from whom: partitions, and tables made by INHERITS.
//!
//! Any user may make a tree as deep as there are tables, and one whose levels inherit twice from
//! the level above, so that 2ⁿ paths lead to its root. So nothing here recurses, each relation
//! is visited once, and every walk can be cancelled.

use super::rows::{CLASS, Catalog, KeyDatum};
use crate::pg::abi::lists;
use pgrx::pg_sys;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::OnceLock;

fn exists(relid: pg_sys::Oid) -> bool {
    CLASS.get(relid, |_| ()).is_some()
}

/// The relation and all its descendants, partitions included; nearer ones first.
pub(crate) fn all_inheritors(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    all_inheritors_of([relid])
}

/// As [`all_inheritors`], with partitions that are [being detached](being_detached), and what is below them: they still find the relation
/// above them.
pub(crate) fn all_below(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let below = |relid| [children(relid), being_detached(relid)].concat();
    descend([relid], below)
}

/// These relations and all their descendants, each once.
pub(crate) fn all_inheritors_of(relids: impl IntoIterator<Item = pg_sys::Oid>) -> Vec<pg_sys::Oid> {
    descend(relids, children)
}

/// These relations, and all that `below` leads to, each once; nearer ones first.
fn descend(
    relids: impl IntoIterator<Item = pg_sys::Oid>,
    below: impl Fn(pg_sys::Oid) -> Vec<pg_sys::Oid>,
) -> Vec<pg_sys::Oid> {
    let mut known = FxHashSet::default();
    let relids = relids.into_iter();
    let mut found: Vec<pg_sys::Oid> = relids.filter(|&relid| known.insert(relid)).collect();
    let mut next = 0;
    while let Some(&relid) = found.get(next) {
        pgrx::check_for_interrupts!();
        let new = below(relid).into_iter();
        found.extend(new.filter(|&relid| known.insert(relid)));
        next += 1;
    }
    found
}

/// The relation to which another belongs as to a parent, without INHERITS: in another extension.
type Parent = fn(pg_sys::Oid) -> Option<pg_sys::Oid>;

static BEYOND: OnceLock<Parent> = OnceLock::new();

/// Searches for parents find these, too; called once, at load.
pub(crate) fn extend(parent: Parent) {
    BEYOND.get_or_init(|| parent);
}

/// The relation's direct children, in the order of OIDs. PostgreSQL leaves temporary tables of other sessions out of a table's
/// children, too.
fn children(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    // It is not locked and may have been dropped.
    if !exists(relid) {
        return vec![];
    }
    let no_lock = pg_sys::NoLock.cast_signed();
    // SAFETY: a look-up within a transaction; the list is copied before it is left to the
    // memory context.
    unsafe {
        let list = pg_sys::find_inheritance_children(relid, no_lock);
        let is_others = |child| {
            let is_so = CLASS.get(child, |class| {
                class.relpersistence as u8 == pg_sys::RELPERSISTENCE_TEMP
                    && pg_sys::isOtherTempNamespace(class.relnamespace)
            });
            is_so == Some(true)
        };
        lists::oids(list)
            .filter(|&child| !is_others(child))
            .collect()
    }
}

/// All ancestors of the relation, each once.
pub(crate) fn ancestors(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let mut found = vec![relid];
    let mut known: FxHashSet<pg_sys::Oid> = found.iter().copied().collect();
    let mut next = 0;
    while let Some(&relid) = found.get(next) {
        pgrx::check_for_interrupts!();
        let new = parents(relid)
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
struct AncestorStep {
    relid: pg_sys::Oid,
    parents: std::vec::IntoIter<pg_sys::Oid>,
}

impl AncestorStep {
    fn of(relid: pg_sys::Oid) -> Self {
        let parents = parents(relid).into_iter();
        Self { relid, parents }
    }
}

/// The topmost of the relation and its ancestors for which `holds` is true. With several
/// parents, the first one under which there is one counts, in the order of INHERITS.
///
/// `known` looks up earlier answers; `found` receives those found on the way.
pub(crate) fn topmost(
    relid: pg_sys::Oid,
    known: impl Fn(pg_sys::Oid) -> Option<Option<pg_sys::Oid>>,
    found: &mut Topmost,
    mut holds: impl FnMut(pg_sys::Oid) -> bool,
) -> Option<pg_sys::Oid> {
    let mut answer = None;
    let mut entered = FxHashSet::from_iter([relid]);
    let mut path = vec![AncestorStep::of(relid)];
    while let Some(step) = path.last_mut() {
        pgrx::check_for_interrupts!();
        if answer.is_none() {
            if let Some(parent) = step.parents.next() {
                if let Some(before) = found.get(&parent).copied().or_else(|| known(parent)) {
                    answer = before;
                } else if entered.insert(parent) {
                    path.push(AncestorStep::of(parent));
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

/// The direct parents: a partition's one, or those of an inheriting table in the order of its
/// INHERITS clause; then the one beyond inheritance.
pub(crate) fn parents(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    // It is not locked and may have been dropped.
    if !exists(relid) {
        return vec![];
    }
    let mut found = INHERITS.collect(&[child(relid)], |row| Some(row.inhparent));
    found.extend(BEYOND.get().and_then(|parent| parent(relid)));
    found
}

fn child(relid: pg_sys::Oid) -> (i16, KeyDatum<'static>) {
    let column = pg_sys::Anum_pg_inherits_inhrelid as i16;
    (column, KeyDatum::Oid(relid))
}

/// The partitioned tables above a partition, the nearest first: triggers and indexes that are made on them are made on it.
pub(crate) fn partitioned_ancestors(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let is_partition = |relid| CLASS.get(relid, |row| row.relispartition) == Some(true);
    let mut found: Vec<pg_sys::Oid> = vec![];
    let mut at = relid;
    while is_partition(at)
        && let Some(parent) = parents(at).into_iter().next()
        && !found.contains(&parent)
    {
        pgrx::check_for_interrupts!();
        found.push(parent);
        at = parent;
    }
    found
}

/// The table of which the relation is a partition; `None` if it is none, or DETACH CONCURRENTLY has begun to detach it.
pub(crate) fn partitioned_parent(relid: pg_sys::Oid) -> Option<pg_sys::Oid> {
    CLASS
        .get(relid, |row| row.relispartition)
        .filter(|&it| it)?;
    INHERITS.find(&[child(relid)], |row| {
        (!row.inhdetachpending).then_some(row.inhparent)
    })
}

// SAFETY: pg_inherits, whose index (inhrelid, inhseqno) gives the order.
const INHERITS: Catalog<pg_sys::FormData_pg_inherits> = unsafe {
    Catalog::new(
        pg_sys::InheritsRelationId,
        Some(pg_sys::Oid::from_u32(pg_sys::InheritsRelidSeqnoIndexId)),
    )
};

// SAFETY: pg_inherits and its index by parent.
const CHILDREN: Catalog<pg_sys::FormData_pg_inherits> = unsafe {
    Catalog::new(
        pg_sys::InheritsRelationId,
        Some(pg_sys::Oid::from_u32(pg_sys::InheritsParentIndexId)),
    )
};

/// The partitions that DETACH CONCURRENTLY has begun to detach: they are not found from the relation any more,
/// and still find it.
pub(crate) fn being_detached(relid: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let column = pg_sys::Anum_pg_inherits_inhparent as i16;
    CHILDREN.collect(&[(column, KeyDatum::Oid(relid))], |row| {
        row.inhdetachpending.then_some(row.inhrelid)
    })
}

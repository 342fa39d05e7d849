//! Each session's cache: which relation has which policy.
//!
//! One hash look-up for every relation that is planned, also if it has none; no work at all in a
//! database without the extension. Relcache invalidation drops entries; a change of label queues
//! one for the table and all that inherit from it (C8).

use super::extension;
use super::policy_lookup;
use super::read_labels;
use super::table_policy::{Inherited, TablePolicy};
use crate::citus;
use crate::pg::abi::variable::ByOid;
use crate::pg::catalog;
use crate::pg::catalog::inheritance::{Topmost, topmost};
use crate::pg::catalog::invalidation;
use crate::policy::Policy;
use pgrx::pg_sys;
use rustc_hash::FxHashMap;
use std::rc::Rc;

static POLICIES: ByOid<Option<Rc<TablePolicy>>> = ByOid::empty();
/// For relations without a policy: a child whose rows count from their last modification.
static CHILDREN_WITH_TTL: ByOid<Option<pg_sys::Oid>> = ByOid::empty();
/// The relation whose label is in force, kept for each relation that a look-up passes, so
/// that a whole tree costs no more than one walk.
static LABELLED_TABLES: ByOid<Option<pg_sys::Oid>> = ByOid::empty();
/// The relations' own labels.
static LABELS: ByOid<Option<Rc<Policy>>> = ByOid::empty();

/// Whether the cache says that the relation has no policy. Calls no function of PostgreSQL, so
/// that hooks need no guard around it.
pub(crate) fn is_known_to_have_none(relid: pg_sys::Oid) -> bool {
    let known = |policies: &FxHashMap<_, Option<_>>| matches!(policies.get(&relid), Some(None));
    is_system(relid) || extension::is_known_to_be_absent() || POLICIES.with_borrow(known)
}

/// Whether the cache says that neither the relation nor, if they are asked for, its partitions and children have rows
/// that are stamped. Calls no function of PostgreSQL.
pub(crate) fn is_known_to_need_no_stamp(relid: pg_sys::Oid, with_children: bool) -> bool {
    let no_child =
        || CHILDREN_WITH_TTL.with_borrow(|known| matches!(known.get(&relid), Some(None)));
    is_known_to_have_none(relid)
        && (!with_children || is_system(relid) || extension::is_known_to_be_absent() || no_child())
}

fn is_system(relid: pg_sys::Oid) -> bool {
    relid.to_u32() < pg_sys::FirstNormalObjectId
}

/// The policy in force for the relation.
pub(crate) fn policy(relid: pg_sys::Oid) -> Option<Rc<TablePolicy>> {
    if is_system(relid) {
        return None;
    }
    if !extension::is_present() {
        extension::check_complete(|| {
            governing_label(relid).is_some_and(|label| label.policy.is_on())
        });
        return None;
    }
    cached(&POLICIES, relid, || {
        governing_label(relid)
            .and_then(|label| policy_lookup::look_up(relid, label))
            .map(Rc::new)
    })
}

#[inline]
fn cached<T: Clone>(known: &ByOid<T>, relid: pg_sys::Oid, look_up: impl FnOnce() -> T) -> T {
    invalidation::cached(known, relid, || !citus::may_become_shard(relid), look_up)
}

/// The label in force: that of the topmost ancestor that has one, since the planner gives a
/// parent's restriction to all its children. With several parents, the first with a label above
/// it counts.
pub(crate) fn governing_label(relid: pg_sys::Oid) -> Option<Inherited> {
    let labelled_table = labelled_table(relid)?;
    let policy = own_label(labelled_table)?;
    Some(Inherited {
        labelled_table,
        policy,
    })
}

/// The relation whose label is in force for this one.
pub(crate) fn labelled_table(relid: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let known =
        |relid| LABELLED_TABLES.with_borrow(|labelled_tables| labelled_tables.get(&relid).copied());
    if let Some(known) = known(relid) {
        return known;
    }
    let before = invalidation::count();
    let mut found = Topmost::default();
    let holds = |relid| catalog::class(relid).is_some() && own_label(relid).is_some();
    let labelled_table = topmost(relid, known, &mut found, holds);
    if invalidation::count() == before {
        found.retain(|&relid, _| !citus::may_become_shard(relid));
        LABELLED_TABLES.with_borrow_mut(|labelled_tables| labelled_tables.extend(found));
    }
    labelled_table
}

/// The relation's own label, as [`read_labels::label_of`] but cached.
pub(crate) fn own_label(relid: pg_sys::Oid) -> Option<Rc<Policy>> {
    cached(&LABELS, relid, || read_labels::label_of(relid).map(Rc::new))
}

/// The relations of this database that carry a label, and their labels, as far as they can be read. Each is cached for [`own_label`].
pub(crate) fn all_labels() -> Vec<(pg_sys::Oid, Option<Rc<Policy>>)> {
    let before = invalidation::count();
    let read = read_labels::all_labels().into_iter();
    let labels: Vec<_> = read
        .map(|(relid, label)| (relid, label.map(Rc::new)))
        .collect();
    if invalidation::count() == before {
        let lasting = labels
            .iter()
            .filter(|(relid, _)| !citus::may_become_shard(*relid));
        LABELS.with_borrow_mut(|known| known.extend(lasting.cloned()));
    }
    labels
}

/// A partition or child of the relation whose rows count from their last modification, if the
/// relation itself has no policy: rows written through it cannot be stamped.
pub(crate) fn child_with_ttl(relid: pg_sys::Oid) -> Option<pg_sys::Oid> {
    if is_system(relid) {
        return None;
    }
    let is_on = |child: &pg_sys::Oid| policy(*child).is_some_and(|p| p.needs_clock());
    cached(&CHILDREN_WITH_TTL, relid, || {
        // A first child, too, invalidates what is known of the relation.
        let has_children = policy(relid).is_none()
            && catalog::class(relid).is_some_and(|class| class.may_have_children);
        let children = has_children.then(|| catalog::all_inheritors(relid));
        children.into_iter().flatten().find(is_on)
    })
}

/// Registers for invalidations; once, at load.
pub(crate) fn init() {
    invalidation::listen(on_invalidation);
}

/// May be called anywhere: does not allocate, raise or look anything up.
fn on_invalidation(relid: pg_sys::Oid) {
    invalidation::forget(&POLICIES, relid);
    invalidation::forget(&CHILDREN_WITH_TTL, relid);
    invalidation::forget(&LABELLED_TABLES, relid);
    invalidation::forget(&LABELS, relid);
}

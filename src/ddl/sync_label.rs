//! TTL indexes followed through statements: renamed, and dropped (M8).
//!
//! Before a statement the indexes that it may rename are noted, by OID; after it the label
//! takes over the names that they have then (docs/decisions/0019-ttl-indexes-by-name.md).
//! It forgets those that `dropped` tells of.

use super::columns::resolve_index;
use super::drop_index;
use super::index_statements::{altered, built_on, dropped_from, renamed, table_of};
use crate::pg::report::or_raise;
use crate::pg::{catalog, nodes, roles, xact};
use crate::policy::Policy;
use crate::store::{extension, index_of, label_of, policy_lock, seclabel};
use pgrx::pg_sys::{self, NodeTag};
use std::cell::RefCell;
use std::collections::HashSet;

/// A TTL index before a statement.
#[derive(Clone)]
pub(super) struct Noted {
    pub(super) holder: pg_sys::Oid,
    pub(super) index: pg_sys::Oid,
    pub(super) name: String,
    /// The transaction nesting level at which the statement runs.
    level: i32,
}

thread_local! {
    /// Those of the statements that are running, the outermost one's first.
    static NOTED: RefCell<Vec<Noted>> = const { RefCell::new(Vec::new()) };
}

/// A statement that is followed.
#[derive(Clone, Copy)]
pub(crate) struct Followed {
    /// How many were noted before it.
    first: usize,
    /// The table of an index that is built: a TTL index may be there, or valid, then.
    building: Option<pg_sys::Oid>,
}

/// Notes the TTL indexes that the statement may rename, and deletes what is expired by
/// those that it drops. `None` if it renames none.
///
/// # Safety
/// `node` is a statement of the parser.
pub(crate) unsafe fn before(node: *mut pg_sys::Node) -> Option<Followed> {
    // SAFETY: as required of the caller; the node's tag tells its type.
    unsafe {
        let tag = nodes::tag(node)?;
        let concerns = [
            NodeTag::T_RenameStmt,
            NodeTag::T_AlterTableStmt,
            NodeTag::T_DropStmt,
            NodeTag::T_IndexStmt,
            NodeTag::T_ReindexStmt,
        ];
        if !concerns.contains(&tag) || pg_sys::IsBinaryUpgrade || pg_sys::RecoveryInProgress() {
            return None;
        }
        extension::functions()?;
        if let Some(relation) = built_on(node) {
            return building(relation);
        }
        let tables = match tag {
            NodeTag::T_RenameStmt => {
                let stmt = node.cast::<pg_sys::RenameStmt>();
                lock_for_rename((*stmt).relation);
                renamed(stmt)
            }
            NodeTag::T_AlterTableStmt => altered(node.cast()),
            _ => dropped_from(node.cast()),
        };
        let noted: Vec<Noted> = tables.into_iter().flat_map(ttl_indexes).collect();
        if noted.is_empty() {
            return None;
        }
        or_raise(drop_index::keep_from_reviving(node, &noted));
        let first = NOTED.with_borrow_mut(|all| {
            let first = all.len();
            all.extend(noted);
            first
        });
        Some(Followed {
            first,
            building: None,
        })
    }
}

/// Locks the policy that names an index, before the statement locks the index: where it
/// is dropped, or its rule changed, that comes last, too.
///
/// # Safety
/// `relation` is a RangeVar or null.
unsafe fn lock_for_rename(relation: *mut pg_sys::RangeVar) {
    // SAFETY: as required of the caller; a syscache look-up.
    unsafe {
        if let Some(index) = (!relation.is_null())
            .then(|| resolve_index(relation))
            .flatten()
        {
            let table = pg_sys::IndexGetRelation(index, true);
            let name = catalog::relation_name(index);
            if label_of(table).is_some_and(|policy| policy.rule(&name).is_some())
                && roles::owns_relation(table, roles::current_user())
            {
                policy_lock::lock_policy_for_change(table);
            }
        }
    }
}

/// # Safety
/// `relation` is a RangeVar, or null.
unsafe fn building(relation: *mut pg_sys::RangeVar) -> Option<Followed> {
    // SAFETY: as required of the caller.
    let table = unsafe { table_of(relation) };
    let first = NOTED.with_borrow(Vec::len);
    let is_named = |&table: &pg_sys::Oid| label_of(table).is_some_and(|p| !p.rules.is_empty());
    table.filter(is_named).map(|table| Followed {
        first,
        building: Some(table),
    })
}

/// Brings the labels into line with the indexes.
pub(crate) fn after(followed: Followed) {
    let noted = NOTED.with_borrow_mut(|all| {
        let first = followed.first.min(all.len());
        all.split_off(first)
    });
    // SAFETY: makes the statement's changes visible.
    unsafe { pg_sys::CommandCounterIncrement() };
    // DROP INDEX CONCURRENTLY ends without one.
    xact::with_snapshot(|| {
        // Those that inherit from it are not told by PostgreSQL.
        if let Some(table) = followed.building
            && catalog::class(table).is_some()
        {
            seclabel::invalidate(table);
        }
        let mut holders: Vec<pg_sys::Oid> = noted.iter().map(|noted| noted.holder).collect();
        holders.sort_unstable_by_key(|holder| holder.to_u32());
        holders.dedup();
        for holder in holders {
            let of_holder: Vec<&Noted> = noted.iter().filter(|n| n.holder == holder).collect();
            follow(holder, &of_holder);
        }
    });
}

/// An error has ended everything down to this transaction nesting level; the statements
/// outside it go on. Raises no error.
pub(super) fn at_abort(level: i32) {
    NOTED.with_borrow_mut(|all| all.retain(|noted| noted.level < level));
}

/// Puts the names that indexes have now into the label of one table.
fn follow(holder: pg_sys::Oid, noted: &[&Noted]) {
    correct(holder, |policy| {
        let mut new = policy.clone();
        for noted in noted {
            let name = catalog::relation_name(noted.index);
            // A name that was given to another index meanwhile is not there any more.
            if !name.is_empty() && name != noted.name {
                new.rename_index(&noted.name, &name);
            }
        }
        // In a dump that is being restored, indexes come after the label.
        if !policy.is_restored(holder.to_u32()) {
            new.rules
                .retain(|rule| index_of(holder, &rule.index).is_some());
        }
        new
    });
}

/// Takes the rules of indexes that were dropped out of the table's label (M8).
pub(super) fn end_rules(holder: pg_sys::Oid, dropped: &[String]) {
    let dropped: HashSet<&String> = dropped.iter().collect();
    correct(holder, |policy| {
        let mut new = policy.clone();
        // ALTER COLUMN … TYPE builds them anew.
        new.rules.retain(|rule| {
            !dropped.contains(&rule.index) || index_of(holder, &rule.index).is_some()
        });
        new
    });
}

/// Stores the label as it is to be, if that is another one.
fn correct(holder: pg_sys::Oid, corrected: impl Fn(&Policy) -> Policy) {
    let names_indexes = |policy: &Policy| !policy.rules.is_empty();
    let is_right = |policy: Policy| corrected(&policy) == policy;
    if catalog::class(holder).is_none()
        || label_of(holder).filter(names_indexes).is_none_or(is_right)
    {
        return;
    }
    // Not by what another session is just changing.
    policy_lock::lock_policy_for_change(holder);
    if let Some(policy) = label_of(holder) {
        let new = corrected(&policy);
        if new != policy {
            let label = (!new.is_empty()).then(|| new.to_label());
            seclabel::set(holder, label.as_deref());
        }
    }
}

/// The TTL indexes that the table's own label names.
fn ttl_indexes(holder: pg_sys::Oid) -> Vec<Noted> {
    let rules = label_of(holder).map_or(vec![], |policy| policy.rules);
    // SAFETY: reads a backend-local variable.
    let level = unsafe { pg_sys::GetCurrentTransactionNestLevel() };
    rules
        .into_iter()
        .filter_map(|rule| {
            Some(Noted {
                holder,
                index: index_of(holder, &rule.index)?,
                name: rule.index,
                level,
            })
        })
        .collect()
}

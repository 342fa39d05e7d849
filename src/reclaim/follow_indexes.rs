//! TTL indexes followed through statements: renamed, and dropped (M8).
//!
//! Before a statement the indexes that it may rename are noted, by OID; after it the label
//! takes over the names that they have then, and forgets those that are gone. Before a
//! statement that drops one, what is expired by it is deleted, so that no row comes back
//! (docs/decisions/0018-turning-off-purges-first.md).

use super::{purge, revival};
use crate::error::{Result, TtlError, or_raise};
use crate::pg::{catalog, extension, index, lists, locks, nodes, roles, seclabel, ttl_index, xact};
use crate::policy::Policy;
use crate::store::ddl::{resolve, resolve_index, text};
use crate::store::{cache, index_of, label_of, labelled};
use pgrx::PgSqlErrorCode;
use pgrx::pg_sys::{self, AlterTableType, DropBehavior, NodeTag, ObjectType};
use std::cell::RefCell;

/// A TTL index before a statement.
#[derive(Clone)]
struct Noted {
    holder: pg_sys::Oid,
    index: pg_sys::Oid,
    name: String,
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
    /// Indexes of any table may go with what it drops.
    any_table: bool,
    /// The table of an index that is built: a TTL index may be there, or valid, then.
    building: Option<pg_sys::Oid>,
}

/// Notes the TTL indexes that the statement concerns, and deletes what is expired by
/// those that it drops. `None` if it concerns none.
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
            NodeTag::T_DropOwnedStmt,
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
        let (tables, behavior) = match tag {
            NodeTag::T_RenameStmt => {
                let relation = (*node.cast::<pg_sys::RenameStmt>()).relation;
                (table_and_heirs(relation), None)
            }
            NodeTag::T_AlterTableStmt => {
                let stmt = node.cast::<pg_sys::AlterTableStmt>();
                let commands = lists::iter::<pg_sys::AlterTableCmd>((*stmt).cmds);
                let cascades = commands
                    .map(|cmd| (*cmd).behavior)
                    .find(|&behavior| behavior == DropBehavior::DROP_CASCADE);
                (table_and_heirs((*stmt).relation), cascades)
            }
            NodeTag::T_DropStmt => {
                let stmt = node.cast::<pg_sys::DropStmt>();
                (dropped_from(stmt), Some((*stmt).behavior))
            }
            _ => {
                let stmt = node.cast::<pg_sys::DropOwnedStmt>();
                (vec![], Some((*stmt).behavior))
            }
        };
        let noted: Vec<Noted> = tables.into_iter().flat_map(ttl_indexes).collect();
        let any_table = behavior == Some(DropBehavior::DROP_CASCADE);
        if noted.is_empty() && !any_table {
            return None;
        }
        for ending in ending(node, &noted) {
            or_raise(keep_from_coming_back(&ending));
        }
        let first = NOTED.with_borrow_mut(|all| {
            let first = all.len();
            all.extend(noted);
            first
        });
        Some(Followed {
            first,
            any_table,
            building: None,
        })
    }
}

/// The relation of CREATE INDEX and REINDEX.
///
/// # Safety
/// `node` is a statement of the parser.
unsafe fn built_on(node: *mut pg_sys::Node) -> Option<*mut pg_sys::RangeVar> {
    // SAFETY: the node's tag tells its type.
    unsafe {
        match nodes::tag(node)? {
            NodeTag::T_IndexStmt => Some((*node.cast::<pg_sys::IndexStmt>()).relation),
            NodeTag::T_ReindexStmt => Some((*node.cast::<pg_sys::ReindexStmt>()).relation),
            _ => None,
        }
    }
}

/// # Safety
/// `relation` is a RangeVar, or null.
unsafe fn building(relation: *mut pg_sys::RangeVar) -> Option<Followed> {
    // SAFETY: as required of the caller.
    let tables = unsafe { table_and_heirs(relation) };
    let first = NOTED.with_borrow(Vec::len);
    tables
        .first()
        .filter(|&&table| label_of(table).is_some_and(|policy| !policy.rules.is_empty()))
        .map(|&table| Followed {
            first,
            any_table: false,
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
        if followed.any_table {
            holders.extend(or_raise(labelled()));
        }
        holders.sort_unstable_by_key(|holder| holder.to_u32());
        holders.dedup();
        for holder in holders {
            let of_holder: Vec<&Noted> = noted.iter().filter(|n| n.holder == holder).collect();
            follow(holder, &of_holder);
        }
    });
}

/// A transaction or subtransaction has failed. Raises no error.
pub(super) fn at_abort() {
    NOTED.with_borrow_mut(Vec::clear);
}

/// Corrects the label of one table.
fn follow(holder: pg_sys::Oid, noted: &[&Noted]) {
    if catalog::class(holder).is_none() || label_of(holder).is_none_or(|p| p.rules.is_empty()) {
        return;
    }
    let corrected = |policy: &Policy| {
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
    };
    if label_of(holder).is_none_or(|policy| corrected(&policy) == policy) {
        return;
    }
    // Not by what another session is just changing.
    locks::lock_policy_for_change(holder);
    if let Some(policy) = label_of(holder) {
        let new = corrected(&policy);
        if new != policy {
            let label = (!new.is_empty()).then(|| new.to_label());
            seclabel::set(holder, label.as_deref());
        }
    }
}

/// The relation, or the table of an index, and all that inherit from it.
///
/// # Safety
/// `relation` is a RangeVar or null.
unsafe fn table_and_heirs(relation: *mut pg_sys::RangeVar) -> Vec<pg_sys::Oid> {
    if relation.is_null() {
        return vec![];
    }
    // SAFETY: as required of the caller; a syscache look-up.
    unsafe {
        let Some(relid) = resolve(relation) else {
            return vec![];
        };
        match pg_sys::IndexGetRelation(relid, true) {
            pg_sys::InvalidOid => catalog::all_inheritors(relid),
            table => vec![table],
        }
    }
}

/// The tables of the indexes that a DROP INDEX names.
unsafe fn dropped_from(stmt: *mut pg_sys::DropStmt) -> Vec<pg_sys::Oid> {
    // SAFETY: a statement of the parser; the objects of DROP INDEX are lists of names.
    unsafe {
        if (*stmt).removeType != ObjectType::OBJECT_INDEX {
            return vec![];
        }
        let mut tables: Vec<pg_sys::Oid> = lists::iter::<pg_sys::List>((*stmt).objects)
            .filter_map(|names| resolve_index(pg_sys::makeRangeVarFromNameList(names)))
            .map(|index| pg_sys::IndexGetRelation(index, true))
            .collect();
        tables.sort_unstable_by_key(|table| table.to_u32());
        tables.dedup();
        tables
    }
}

/// The TTL indexes that the table's own label names.
fn ttl_indexes(holder: pg_sys::Oid) -> Vec<Noted> {
    let rules = label_of(holder).map_or(vec![], |policy| policy.rules);
    rules
        .into_iter()
        .filter_map(|rule| {
            Some(Noted {
                holder,
                index: index_of(holder, &rule.index)?,
                name: rule.index,
            })
        })
        .collect()
}

/// A table some of whose TTL indexes go.
struct Ending {
    holder: pg_sys::Oid,
    names: Vec<String>,
    /// DROP INDEX CONCURRENTLY, which must be the first to write in its transaction.
    concurrently: bool,
}

/// Which of the noted indexes the statement drops.
///
/// # Safety
/// `node` is a statement of the parser.
unsafe fn ending(node: *mut pg_sys::Node, noted: &[Noted]) -> Vec<Ending> {
    // SAFETY: as required of the caller; the node's tag tells its type.
    unsafe {
        let (going, concurrently) = match nodes::tag(node) {
            // Of what is dropped otherwise, nothing was noted.
            Some(NodeTag::T_DropStmt) if !noted.is_empty() => {
                let stmt = node.cast::<pg_sys::DropStmt>();
                let dropped: Vec<pg_sys::Oid> = lists::iter::<pg_sys::List>((*stmt).objects)
                    .filter_map(|names| resolve_index(pg_sys::makeRangeVarFromNameList(names)))
                    .collect();
                let going = noted
                    .iter()
                    .filter(|n| dropped.contains(&n.index))
                    .collect();
                (going, (*stmt).concurrent)
            }
            Some(NodeTag::T_AlterTableStmt) => {
                let stmt = node.cast::<pg_sys::AlterTableStmt>();
                let going = noted.iter().filter(|n| goes_with(stmt, n)).collect();
                (going, false)
            }
            _ => return vec![],
        };
        let going: Vec<&Noted> = going;
        let mut endings: Vec<Ending> = vec![];
        for noted in going {
            match endings.iter_mut().find(|e| e.holder == noted.holder) {
                Some(ending) => ending.names.push(noted.name.clone()),
                None => endings.push(Ending {
                    holder: noted.holder,
                    names: vec![noted.name.clone()],
                    concurrently,
                }),
            }
        }
        endings
    }
}

/// Whether the index goes with a column or constraint that the statement drops.
unsafe fn goes_with(stmt: *mut pg_sys::AlterTableStmt, noted: &Noted) -> bool {
    // SAFETY: a statement of the parser; the commands' subtypes tell which fields are set.
    unsafe {
        lists::iter::<pg_sys::AlterTableCmd>((*stmt).cmds).any(|cmd| match (*cmd).subtype {
            AlterTableType::AT_DropColumn => {
                ttl_index::depends_on(noted.index, noted.holder, &text((*cmd).name))
            }
            AlterTableType::AT_DropConstraint => {
                index::of_constraint(noted.holder, (*cmd).name) == Some(noted.index)
            }
            _ => false,
        })
    }
}

/// Deletes what would come back. Errors of the statement are left to PostgreSQL: it is
/// not even looked at where the user does not own the table.
fn keep_from_coming_back(ending: &Ending) -> Result<()> {
    let Ending { holder, names, .. } = ending;
    let holder = *holder;
    let concerns = || {
        cache::policy(holder).is_some_and(|policy| {
            policy.holder == holder
                && policy.hides()
                && policy.rules.iter().any(|rule| names.contains(&rule.index))
        })
    };
    // SAFETY: reads backend-local variables.
    let forbidden = unsafe { pg_sys::XactReadOnly || pg_sys::IsInParallelMode() };
    // `pg_restore --clean`: the table goes next.
    if forbidden
        || !concerns()
        || roles::reads_physically(holder)
        || !roles::owns_relation(holder, roles::current_user())
    {
        return Ok(());
    }
    // The statement's own lock, before anything else is locked.
    let lock = if ending.concurrently {
        pg_sys::ShareUpdateExclusiveLock
    } else {
        pg_sys::AccessExclusiveLock
    };
    locks::relation(holder, lock);
    let Some(policy) = label_of(holder).filter(|_| concerns()) else {
        return Ok(());
    };
    if ending.concurrently {
        let tree = catalog::all_inheritors(holder);
        if tree.into_iter().any(purge::has_expired) {
            return Err(rows_in_the_way(holder, names));
        }
        return Ok(());
    }
    let mut without = policy;
    without.rules.retain(|rule| !names.contains(&rule.index));
    revival::prevent(holder, Some(&without), pg_sys::RowExclusiveLock)
}

fn rows_in_the_way(holder: pg_sys::Oid, names: &[String]) -> TtlError {
    let table = catalog::qualified_name(holder);
    let first = names.first().map_or("", String::as_str);
    let index = catalog::quote_literal(&index::qualified_name(holder, first));
    TtlError::new(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("expired rows of table {table} would live again"),
    )
    .detail("DROP INDEX CONCURRENTLY cannot delete them.")
    .hint(format!(
        "End the rule first, by which they are deleted: SELECT ttl.expire_index({index}, NULL)."
    ))
}

//! Before a statement that drops a TTL index, what is expired by it is deleted, so that no
//! row comes back (docs/decisions/0018-turning-off-purges-first.md).

use super::sync_label::Noted;
use super::{index_statements, purge_before_change};
use crate::deletion::purge;
use crate::error::{Error, Result};
use crate::pg::{catalog, index, locks, nodes, roles};
use crate::store::{cache, label_of};
use pgrx::PgSqlErrorCode;
use pgrx::pg_sys::{self, NodeTag};

/// A table some of whose TTL indexes go.
struct Ending {
    holder: pg_sys::Oid,
    names: Vec<String>,
    /// DROP INDEX CONCURRENTLY, which must be the first to write in its transaction.
    concurrently: bool,
}

/// Deletes what is expired by those of the noted indexes that the statement drops.
///
/// # Safety
/// `node` is a statement of the parser.
pub(super) unsafe fn keep_from_reviving(node: *mut pg_sys::Node, noted: &[Noted]) -> Result<()> {
    // SAFETY: as required of the caller.
    let endings = unsafe { endings(node, noted) };
    endings.iter().try_for_each(keep_from_coming_back)
}

/// Which of the noted indexes the statement drops.
///
/// # Safety
/// `node` is a statement of the parser.
unsafe fn endings(node: *mut pg_sys::Node, noted: &[Noted]) -> Vec<Ending> {
    // SAFETY: as required of the caller; the node's tag tells its type.
    unsafe {
        let (going, concurrently) = match nodes::tag(node) {
            // Of what is dropped otherwise, nothing was noted.
            Some(NodeTag::T_DropStmt) if !noted.is_empty() => {
                let stmt = node.cast::<pg_sys::DropStmt>();
                let dropped = index_statements::dropped(stmt);
                let is_dropped = |n: &&Noted| dropped.contains(&n.index);
                let going: Vec<&Noted> = noted.iter().filter(is_dropped).collect();
                (going, (*stmt).concurrent)
            }
            Some(NodeTag::T_AlterTableStmt) => {
                let stmt = node.cast::<pg_sys::AlterTableStmt>();
                let is_dropped = |n: &&Noted| index_statements::drops(stmt, n.holder, n.index);
                (noted.iter().filter(is_dropped).collect(), false)
            }
            _ => return vec![],
        };
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

/// Deletes what would come back. Errors of the statement are left to PostgreSQL: it is
/// not even looked at where the user may not drop it.
fn keep_from_coming_back(ending: &Ending) -> Result<()> {
    let Ending { holder, names, .. } = ending;
    let holder = *holder;
    let concerns = || {
        cache::policy(holder).is_some_and(|policy| {
            policy.labelled_table == holder
                && policy.hides()
                && policy.rules.iter().any(|rule| names.contains(&rule.index))
        })
    };
    // SAFETY: reads backend-local variables.
    let forbidden = unsafe { pg_sys::XactReadOnly || pg_sys::IsInParallelMode() };
    // `pg_restore --clean`: the table goes next.
    if forbidden || !concerns() || roles::reads_physically(holder) || !may_drop(holder) {
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
    purge_before_change::prevent(holder, Some(&without), pg_sys::RowExclusiveLock)
}

/// Whether the current user may drop an index of the table: its owner, and that of its
/// schema.
fn may_drop(holder: pg_sys::Oid) -> bool {
    let user = roles::current_user();
    roles::owns_relation(holder, user)
        || catalog::class(holder).is_some_and(|class| roles::owns_schema(class.namespace, user))
}

fn rows_in_the_way(holder: pg_sys::Oid, names: &[String]) -> Error {
    let table = catalog::qualified_name(holder);
    let first = names.first().map_or("", String::as_str);
    let index = catalog::quote_literal(&index::qualified_name(holder, first));
    Error::new(
        PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("expired rows of table {table} would live again"),
    )
    .detail("DROP INDEX CONCURRENTLY cannot delete them.")
    .hint(format!(
        "End the rule first, by which they are deleted: SELECT ttl.expire_index({index}, NULL)."
    ))
}

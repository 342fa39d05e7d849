//! Before a statement drops a TTL index, the rows that are expired by it are deleted, so that none
//! lives again (docs/decisions/0018-turning-off-purges-first.md).

use super::purge_before_change;
use super::statement_kind::AlterCommand;
use super::utility_statement::UtilityStatement;
use crate::citus;
use crate::deletion::purge_tables;
use crate::error::{Error, Result};
use crate::pg::abi::encoding;
use crate::pg::abi::report::or_raise;
use crate::pg::catalog::{self, index, roles};
use crate::pg::session::{locks, xact};
use crate::policy::Policy;
use crate::store::{cache, label_of};
use pgrx::pg_sys;

/// A TTL index before a statement.
pub(super) struct IndexBefore {
    pub(super) labelled_table: pg_sys::Oid,
    pub(super) index: pg_sys::Oid,
    pub(super) name: String,
}

/// Deletes the rows that are expired by those of the noted indexes, table by table, that the statement drops.
pub(super) fn keep_from_reviving(
    statement: &UtilityStatement<'_>,
    noted: &[IndexBefore],
) -> Result<()> {
    for of_table in noted.chunk_by(|a, b| a.labelled_table == b.labelled_table) {
        let dropped = of_table.iter().filter(|noted| drops(statement, noted));
        let names: Vec<String> = dropped.map(|noted| noted.name.clone()).collect();
        if let Some(noted) = of_table.first().filter(|_| !names.is_empty()) {
            keep_from_coming_back(noted.labelled_table, &names, statement.concurrent)?;
        }
    }
    Ok(())
}

/// Whether the statement drops the index: by its name, or with a column or constraint.
fn drops(statement: &UtilityStatement<'_>, noted: &IndexBefore) -> bool {
    let &IndexBefore {
        labelled_table,
        index,
        ..
    } = noted;
    statement.indexes.contains(&index)
        || statement.commands.iter().any(|command| match command {
            AlterCommand::DropColumn(name) => {
                or_raise(goes_with_column(index, labelled_table, name))
            }
            AlterCommand::DropConstraint(name) => {
                index::of_constraint(labelled_table, name) == Some(index)
            }
            _ => false,
        })
}

/// Deletes the rows that would live again without these indexes. Does nothing if the user may not drop them:
/// PostgreSQL raises the error. With DROP INDEX CONCURRENTLY nothing may be written before it in its transaction.
fn keep_from_coming_back(
    labelled_table: pg_sys::Oid,
    names: &[String],
    concurrently: bool,
) -> Result<()> {
    let concerns = || {
        cache::policy(labelled_table).is_some_and(|policy| {
            policy.labelled_table == labelled_table
                && policy.hides_anywhere()
                && policy.rules.iter().any(|rule| names.contains(&rule.index))
        })
    };
    // `pg_restore --clean` drops the table next.
    // The other nodes of Citus leave it to the one that has been asked.
    if xact::is_read_only()
        || citus::is_of_citus()
        || !concerns()
        || roles::reads_physically(labelled_table)
        || !may_drop(labelled_table)
    {
        return Ok(());
    }
    let without = |mut policy: Policy| {
        policy.rules.retain(|rule| !names.contains(&rule.index));
        policy
    };
    if citus::is_shell(labelled_table) {
        let without = label_of(labelled_table).map(without);
        return purge_before_change::prevent(labelled_table, without.as_ref(), pg_sys::NoLock);
    }
    // Take the lock of the statement first, to keep the lock order.
    let lock = if concurrently {
        pg_sys::ShareUpdateExclusiveLock
    } else {
        pg_sys::AccessExclusiveLock
    };
    locks::relation(labelled_table, lock);
    let Some(policy) = label_of(labelled_table).filter(|_| concerns()) else {
        return Ok(());
    };
    if concurrently {
        let tree = catalog::all_inheritors(labelled_table);
        if tree.into_iter().any(purge_tables::has_expired) {
            return Err(rows_in_the_way(labelled_table, names));
        }
        return Ok(());
    }
    let without = without(policy);
    purge_before_change::prevent(labelled_table, Some(&without), pg_sys::RowExclusiveLock)
}

/// Whether the current user may drop an index of the table: the table's owner or the schema's.
fn may_drop(labelled_table: pg_sys::Oid) -> bool {
    let user = roles::current_user();
    roles::owns_relation(labelled_table, user)
        || catalog::class(labelled_table)
            .is_some_and(|class| roles::owns(pg_sys::NamespaceRelationId, class.namespace, user))
}

fn rows_in_the_way(labelled_table: pg_sys::Oid, names: &[String]) -> Error {
    let table = catalog::qualified_name(labelled_table);
    let first = names.first().map_or("", String::as_str);
    let index = catalog::quote_literal(&index::qualified_name(labelled_table, first));
    Error::not_ready(format!("expired rows of table {table} would live again"))
    .detail("DROP INDEX CONCURRENTLY cannot delete them.")
    .hint(format!(
        "To delete them, and make the index an ordinary one, first run: SELECT ttl.expire_index({index}, NULL);"
    ))
}

/// Whether dropping the column drops the index: it is on the column, its predicate names it, or it
/// is on a column generated from it.
fn goes_with_column(dropped: pg_sys::Oid, table: pg_sys::Oid, column: &str) -> Result<bool> {
    let Some(column) = catalog::attribute(table, column) else {
        return Ok(false);
    };
    // A generated column depends on its expression with deptype 'i' in pg_depend.
    let query = format!(
        "WITH RECURSIVE going (classid, objid, objsubid) AS ( \
             SELECT 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid, {}::pg_catalog.oid, {} \
             UNION \
             SELECT n.* FROM going AS g CROSS JOIN LATERAL ( \
                 SELECT d.classid, d.objid, d.objsubid FROM pg_catalog.pg_depend AS d \
                  WHERE d.refclassid OPERATOR(pg_catalog.=) g.classid \
                    AND d.refobjid OPERATOR(pg_catalog.=) g.objid \
                    AND (d.refobjsubid OPERATOR(pg_catalog.=) g.objsubid OR g.objsubid OPERATOR(pg_catalog.=) 0) \
                 UNION ALL \
                 SELECT d.refclassid, d.refobjid, d.refobjsubid FROM pg_catalog.pg_depend AS d \
                  WHERE d.classid OPERATOR(pg_catalog.=) g.classid \
                    AND d.objid OPERATOR(pg_catalog.=) g.objid \
                    AND d.objsubid OPERATOR(pg_catalog.=) g.objsubid \
                    AND d.deptype OPERATOR(pg_catalog.=) 'i') AS n) \
         SELECT EXISTS (SELECT FROM going \
          WHERE classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass \
            AND objid OPERATOR(pg_catalog.=) {})",
        table.to_u32(),
        column.attno,
        dropped.to_u32()
    );
    Ok(encoding::first_bool(&query)?.unwrap_or(false))
}

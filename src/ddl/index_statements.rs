//! Which statements build, rename or drop indexes, and of which tables.

use super::columns::{resolve, resolve_index, text};
use crate::error::Result;
use crate::pg::report::or_raise;
use crate::pg::{catalog, index, lists, nodes};
use pgrx::pg_sys::{self, AlterTableType, NodeTag, ObjectType};
use pgrx::spi::Spi;

/// The relation of CREATE INDEX and REINDEX.
///
/// # Safety
/// `node` is a statement of the parser.
pub(super) unsafe fn built_on(node: *mut pg_sys::Node) -> Option<*mut pg_sys::RangeVar> {
    // SAFETY: the node's tag tells its type.
    unsafe {
        match nodes::tag(node)? {
            NodeTag::T_IndexStmt => Some((*node.cast::<pg_sys::IndexStmt>()).relation),
            NodeTag::T_ReindexStmt => Some((*node.cast::<pg_sys::ReindexStmt>()).relation),
            _ => None,
        }
    }
}

/// The relation, or the table of an index.
///
/// # Safety
/// `relation` is a RangeVar or null.
pub(super) unsafe fn table_of(relation: *mut pg_sys::RangeVar) -> Option<pg_sys::Oid> {
    if relation.is_null() {
        return None;
    }
    // SAFETY: as required of the caller; a syscache look-up.
    unsafe {
        let relid = resolve(relation)?;
        match pg_sys::IndexGetRelation(relid, true) {
            pg_sys::InvalidOid => Some(relid),
            table => Some(table),
        }
    }
}

/// The table whose index, or constraint with an index, a statement renames.
///
/// # Safety
/// A statement of the parser.
pub(super) unsafe fn renamed(stmt: *mut pg_sys::RenameStmt) -> Vec<pg_sys::Oid> {
    let kinds = [
        ObjectType::OBJECT_INDEX,
        // ALTER TABLE can rename an index, too.
        ObjectType::OBJECT_TABLE,
        ObjectType::OBJECT_TABCONSTRAINT,
    ];
    // SAFETY: as required of the caller.
    unsafe {
        if !kinds.contains(&(*stmt).renameType) {
            return vec![];
        }
        table_of((*stmt).relation).into_iter().collect()
    }
}

/// The tables of which ALTER TABLE can rename an index (ADD CONSTRAINT … USING INDEX) or
/// drop one.
///
/// # Safety
/// A statement of the parser.
pub(super) unsafe fn altered(stmt: *mut pg_sys::AlterTableStmt) -> Vec<pg_sys::Oid> {
    // SAFETY: as required of the caller.
    unsafe {
        let has = |subtypes: &[AlterTableType::Type]| {
            lists::iter::<pg_sys::AlterTableCmd>((*stmt).cmds)
                .any(|cmd| subtypes.contains(&(*cmd).subtype))
        };
        let drops = has(&[
            AlterTableType::AT_DropColumn,
            AlterTableType::AT_DropConstraint,
        ]);
        if !drops && !has(&[AlterTableType::AT_AddConstraint]) {
            return vec![];
        }
        match table_of((*stmt).relation) {
            Some(table) if drops => catalog::all_inheritors(table),
            table => table.into_iter().collect(),
        }
    }
}

/// The tables of the indexes that a DROP INDEX names; none for another DROP.
///
/// # Safety
/// A statement of the parser.
pub(super) unsafe fn dropped_from(stmt: *mut pg_sys::DropStmt) -> Vec<pg_sys::Oid> {
    // SAFETY: as required of the caller.
    unsafe {
        if (*stmt).removeType != ObjectType::OBJECT_INDEX {
            return vec![];
        }
        let mut tables: Vec<pg_sys::Oid> = dropped(stmt)
            .into_iter()
            .map(|index| pg_sys::IndexGetRelation(index, true))
            .collect();
        tables.sort_unstable_by_key(|table| table.to_u32());
        tables.dedup();
        tables
    }
}

/// The indexes that a DROP INDEX names.
///
/// # Safety
/// A DROP INDEX of the parser.
pub(super) unsafe fn dropped(stmt: *mut pg_sys::DropStmt) -> Vec<pg_sys::Oid> {
    // SAFETY: the objects of DROP INDEX are lists of names.
    unsafe {
        lists::iter::<pg_sys::List>((*stmt).objects)
            .filter_map(|names| resolve_index(pg_sys::makeRangeVarFromNameList(names)))
            .collect()
    }
}

/// Whether the index of the table goes with a column or constraint that the statement
/// drops.
///
/// # Safety
/// A statement of the parser.
pub(super) unsafe fn drops(
    stmt: *mut pg_sys::AlterTableStmt,
    table: pg_sys::Oid,
    dropped: pg_sys::Oid,
) -> bool {
    // SAFETY: the commands' subtypes tell which fields are set.
    unsafe {
        lists::iter::<pg_sys::AlterTableCmd>((*stmt).cmds).any(|cmd| match (*cmd).subtype {
            AlterTableType::AT_DropColumn => {
                or_raise(goes_with_column(dropped, table, &text((*cmd).name)))
            }
            AlterTableType::AT_DropConstraint => {
                index::of_constraint(table, (*cmd).name) == Some(dropped)
            }
            _ => false,
        })
    }
}

/// Whether the index goes with the column of the table: it is on the column, its
/// predicate names it, or it depends on a column that is generated from it.
fn goes_with_column(dropped: pg_sys::Oid, table: pg_sys::Oid, column: &str) -> Result<bool> {
    let Some(column) = catalog::attribute(table, column) else {
        return Ok(false);
    };
    // A generated column goes with its expression, its part: pg_depend's deptype 'i'.
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
         SELECT true FROM going \
          WHERE classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass \
            AND objid OPERATOR(pg_catalog.=) {} LIMIT 1",
        table.to_u32(),
        column.attno,
        dropped.to_u32()
    );
    Ok(Spi::connect(|client| {
        client
            .select(&query, Some(1), &[])
            .map(|rows| !rows.is_empty())
    })?)
}

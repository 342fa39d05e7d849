//! Which statements read or check every row of a table, and can fail because of one.

use crate::pg::{lists, nodes};
use pgrx::pg_sys::{self, AlterTableCmd, AlterTableType, ConstrType, Constraint, NodeTag};

/// Which tables are read, beside the one that is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Extent {
    /// Its default partition only: which rows belong to a new one?
    DefaultPartition,
    /// Partitions, and not those that inherit from it: indexes, and what is built
    /// on them, are each table's own.
    Partitions,
    /// Partitions, and those that inherit from it.
    Heirs,
}

/// What a statement reads, and the lock that it takes first.
pub(super) struct Reading {
    pub(super) relation: *mut pg_sys::RangeVar,
    pub(super) extent: Extent,
    pub(super) lock: u32,
}

/// What the statement reads, in the order in which it locks.
///
/// # Safety
/// `node` is a statement of the parser.
pub(super) unsafe fn readings(node: *mut pg_sys::Node) -> Vec<Reading> {
    // SAFETY: the tag tells the type.
    unsafe {
        match nodes::tag(node) {
            Some(NodeTag::T_IndexStmt) => index(node.cast()).into_iter().collect(),
            Some(NodeTag::T_AlterTableStmt) => alter_table(node.cast()),
            Some(NodeTag::T_CreateStmt) => create_table(node.cast()).into_iter().collect(),
            _ => vec![],
        }
    }
}

/// `CREATE UNIQUE INDEX`; any other index holds expired rows as well as live ones.
unsafe fn index(stmt: *mut pg_sys::IndexStmt) -> Option<Reading> {
    // SAFETY: as required of the caller of `readings`.
    unsafe {
        ((*stmt).unique && !(*stmt).relation.is_null()).then(|| Reading {
            relation: (*stmt).relation,
            extent: Extent::Partitions,
            // SHARE, which CREATE INDEX takes, would let two of them wait for each
            // other when they delete.
            lock: if (*stmt).concurrent {
                pg_sys::ShareUpdateExclusiveLock
            } else {
                pg_sys::ShareRowExclusiveLock
            },
        })
    }
}

/// `CREATE TABLE … PARTITION OF`: no row of the default partition may belong to it.
unsafe fn create_table(stmt: *mut pg_sys::CreateStmt) -> Option<Reading> {
    // SAFETY: as required of the caller of `readings`; a partition has one parent.
    unsafe {
        let bound = (*stmt).partbound.as_ref()?;
        let parent = lists::nth::<pg_sys::RangeVar>((*stmt).inhRelations, 0)?;
        (!bound.is_default).then_some(Reading {
            relation: parent,
            extent: Extent::DefaultPartition,
            lock: pg_sys::AccessExclusiveLock,
        })
    }
}

/// `ALTER TABLE`: what its commands read, together.
unsafe fn alter_table(stmt: *mut pg_sys::AlterTableStmt) -> Vec<Reading> {
    // SAFETY: the subtype of a command tells the type of its definition.
    unsafe {
        if (*stmt).objtype != pg_sys::ObjectType::OBJECT_TABLE {
            return vec![];
        }
        let lock = || pg_sys::AlterTableGetLockLevel((*stmt).cmds).cast_unsigned();
        let mut readings = vec![];
        if let Some(extent) = lists::iter::<AlterTableCmd>((*stmt).cmds)
            .filter_map(|cmd| command(cmd))
            .max()
        {
            readings.push(Reading {
                relation: (*stmt).relation,
                extent,
                lock: lock(),
            });
        }
        // The rows of a table that becomes a partition must belong there.
        for cmd in lists::iter::<AlterTableCmd>((*stmt).cmds) {
            if (*cmd).subtype == AlterTableType::AT_AttachPartition && !(*cmd).def.is_null() {
                readings.push(Reading {
                    relation: (*(*cmd).def.cast::<pg_sys::PartitionCmd>()).name,
                    extent: Extent::Heirs,
                    lock: pg_sys::AccessExclusiveLock,
                });
            }
        }
        readings
    }
}

unsafe fn command(cmd: *mut AlterTableCmd) -> Option<Extent> {
    // SAFETY: as in `alter_table`.
    unsafe {
        let definition = (*cmd).def;
        match (*cmd).subtype {
            AlterTableType::AT_AddConstraint if !definition.is_null() => {
                let constraint = definition.cast::<Constraint>();
                checked((*constraint).contype, (*constraint).skip_validation)
            }
            // A new column: its constraints are checked, its expression computed.
            AlterTableType::AT_AddColumn if !definition.is_null() => {
                let column = definition.cast::<pg_sys::ColumnDef>();
                lists::iter::<Constraint>((*column).constraints)
                    .filter_map(|c| checked((*c).contype, (*c).skip_validation))
                    .max()
            }
            AlterTableType::AT_AttachPartition if !definition.is_null() => {
                let bound = (*definition.cast::<pg_sys::PartitionCmd>())
                    .bound
                    .as_ref()?;
                (!bound.is_default).then_some(Extent::DefaultPartition)
            }
            #[cfg(not(any(feature = "pg15", feature = "pg16")))]
            AlterTableType::AT_SetExpression => Some(Extent::Heirs),
            #[cfg(feature = "pg18")]
            AlterTableType::AT_AlterConstraint if !definition.is_null() => {
                let change = definition.cast::<pg_sys::ATAlterConstraint>();
                ((*change).alterEnforceability && (*change).is_enforced)
                    .then_some(Extent::Partitions)
            }
            AlterTableType::AT_ValidateConstraint
            | AlterTableType::AT_SetNotNull
            | AlterTableType::AT_AlterColumnType => Some(Extent::Heirs),
            _ => None,
        }
    }
}

/// What a constraint that is added reads. A primary key makes its columns NOT NULL,
/// those of heirs, too.
fn checked(kind: ConstrType::Type, not_valid: bool) -> Option<Extent> {
    match kind {
        ConstrType::CONSTR_UNIQUE | ConstrType::CONSTR_EXCLUSION => Some(Extent::Partitions),
        ConstrType::CONSTR_PRIMARY | ConstrType::CONSTR_GENERATED => Some(Extent::Heirs),
        ConstrType::CONSTR_CHECK | ConstrType::CONSTR_NOTNULL => {
            (!not_valid).then_some(Extent::Heirs)
        }
        ConstrType::CONSTR_FOREIGN => (!not_valid).then_some(Extent::Partitions),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C6: constraints that are checked on the rows that are there, and on whose.
    #[test]
    fn c6_constraints_that_read_rows() {
        for (kind, valid, not_valid) in [
            (
                ConstrType::CONSTR_UNIQUE,
                Some(Extent::Partitions),
                Some(Extent::Partitions),
            ),
            (
                ConstrType::CONSTR_PRIMARY,
                Some(Extent::Heirs),
                Some(Extent::Heirs),
            ),
            (ConstrType::CONSTR_CHECK, Some(Extent::Heirs), None),
            (ConstrType::CONSTR_NOTNULL, Some(Extent::Heirs), None),
            (ConstrType::CONSTR_FOREIGN, Some(Extent::Partitions), None),
            (ConstrType::CONSTR_DEFAULT, None, None),
            (ConstrType::CONSTR_NULL, None, None),
            (ConstrType::CONSTR_IDENTITY, None, None),
        ] {
            assert_eq!(checked(kind, false), valid, "{kind}");
            assert_eq!(checked(kind, true), not_valid, "{kind} NOT VALID");
        }
    }

    /// Of several commands the one that reads most counts.
    #[test]
    fn the_widest_extent_counts() {
        assert!(Extent::Heirs > Extent::Partitions);
    }
}

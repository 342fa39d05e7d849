//! Which commands of ALTER TABLE read or check every row, and can fail because of one.

use crate::pg::syntax::Node;
use pgrx::pg_sys::{self, AlterTableCmd, AlterTableType, ConstrType, Constraint};

/// Which tables are read, beside the one that is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extent {
    /// Its default partition only: which rows belong to a new one?
    DefaultPartition,
    /// Partitions, and not those that inherit from it: indexes, and what is built
    /// on them, are each table's own.
    Partitions,
    /// Partitions, and those that inherit from it.
    Children,
}

/// Whose rows a command of ALTER TABLE reads.
pub(super) fn command(cmd: Node<'_, AlterTableCmd>) -> Option<Extent> {
    let definition = cmd.node(|cmd| &cmd.def);
    let of =
        |constraint: Node<'_, Constraint>| checked(constraint.contype, constraint.skip_validation);
    match cmd.subtype {
        AlterTableType::AT_AddConstraint => of(definition?.cast()?),
        // A new column: its constraints are checked, its expression computed.
        AlterTableType::AT_AddColumn => definition?
            .cast::<pg_sys::ColumnDef>()?
            .list(|column| &column.constraints)
            .filter_map(of)
            .max(),
        AlterTableType::AT_AttachPartition => {
            let partition = definition?.cast::<pg_sys::PartitionCmd>()?;
            let bound = partition.node(|partition| &partition.bound)?;
            (!bound.is_default).then_some(Extent::DefaultPartition)
        }
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
        AlterTableType::AT_SetExpression => Some(Extent::Children),
        #[cfg(feature = "pg18")]
        AlterTableType::AT_AlterConstraint => {
            let change = definition?.cast::<pg_sys::ATAlterConstraint>()?;
            (change.alterEnforceability && change.is_enforced).then_some(Extent::Partitions)
        }
        AlterTableType::AT_ValidateConstraint
        | AlterTableType::AT_SetNotNull
        | AlterTableType::AT_AlterColumnType => Some(Extent::Children),
        _ => None,
    }
}

/// What a constraint that is added reads. A primary key makes its columns NOT NULL,
/// those of children, too.
fn checked(kind: ConstrType::Type, not_valid: bool) -> Option<Extent> {
    match kind {
        ConstrType::CONSTR_UNIQUE | ConstrType::CONSTR_EXCLUSION => Some(Extent::Partitions),
        ConstrType::CONSTR_PRIMARY | ConstrType::CONSTR_GENERATED => Some(Extent::Children),
        ConstrType::CONSTR_CHECK | ConstrType::CONSTR_NOTNULL => {
            (!not_valid).then_some(Extent::Children)
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
                Some(Extent::Children),
                Some(Extent::Children),
            ),
            (ConstrType::CONSTR_CHECK, Some(Extent::Children), None),
            (ConstrType::CONSTR_NOTNULL, Some(Extent::Children), None),
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
        assert!(Extent::Children > Extent::Partitions);
    }
}

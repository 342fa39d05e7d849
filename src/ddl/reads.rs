//! Which commands of ALTER TABLE read or check every row, and so can fail because of one.

use crate::pg::catalog::names;
use crate::pg::catalog::syntax::Node;
use pgrx::pg_sys::{self, AlterTableCmd, AlterTableType, ConstrType, Constraint};

/// Which tables are read beside the named one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RowsRead {
    /// Only its default partition, to check that no row belongs to the new one.
    DefaultPartition,
    /// Its partitions, but not inheriting tables: each of those has indexes of its own.
    Partitions,
    /// Its partitions and inheriting tables.
    Children,
}

/// Whose rows a command of ALTER TABLE reads.
pub(super) fn command(cmd: Node<'_, AlterTableCmd>) -> Option<RowsRead> {
    let definition = cmd.node(|cmd| &cmd.def);
    let of =
        |constraint: Node<'_, Constraint>| checked(constraint.contype, constraint.skip_validation);
    match cmd.subtype {
        AlterTableType::AT_AddConstraint => of(definition?.cast()?),
        // A new column: constraints are checked and expressions computed for every row.
        AlterTableType::AT_AddColumn => {
            let column = definition?.cast::<pg_sys::ColumnDef>()?;
            let checked = column
                .list(|column| &column.constraints)
                .filter_map(of)
                .max();
            // Those of a domain, too.
            let named = column.node(|column| &column.typeName);
            let is_domain = |&(named, _): &(pg_sys::Oid, i32)| names::base_type(named) != named;
            let domain = named.and_then(names::named_type).filter(is_domain);
            checked.max(domain.map(|_| RowsRead::Children))
        }
        AlterTableType::AT_AttachPartition => {
            let partition = definition?.cast::<pg_sys::PartitionCmd>()?;
            let bound = partition.node(|partition| &partition.bound)?;
            (!bound.is_default).then_some(RowsRead::DefaultPartition)
        }
        #[cfg(since17)]
        AlterTableType::AT_SetExpression => Some(RowsRead::Children),
        #[cfg(since18)]
        AlterTableType::AT_AlterConstraint => {
            let change = definition?.cast::<pg_sys::ATAlterConstraint>()?;
            let enforced = change.alterEnforceability && change.is_enforced;
            // NOT NULL comes to the children.
            let inherited = change.alterInheritability && !change.noinherit;
            enforced
                .then_some(RowsRead::Partitions)
                .max(inherited.then_some(RowsRead::Children))
        }
        AlterTableType::AT_ValidateConstraint
        | AlterTableType::AT_SetNotNull
        | AlterTableType::AT_AlterColumnType => Some(RowsRead::Children),
        _ => None,
    }
}

/// What adding a constraint reads. A primary key also makes the columns of children NOT NULL.
fn checked(kind: ConstrType::Type, not_valid: bool) -> Option<RowsRead> {
    match kind {
        ConstrType::CONSTR_UNIQUE | ConstrType::CONSTR_EXCLUSION => Some(RowsRead::Partitions),
        ConstrType::CONSTR_PRIMARY | ConstrType::CONSTR_GENERATED => Some(RowsRead::Children),
        ConstrType::CONSTR_CHECK | ConstrType::CONSTR_NOTNULL => {
            (!not_valid).then_some(RowsRead::Children)
        }
        ConstrType::CONSTR_FOREIGN => (!not_valid).then_some(RowsRead::Partitions),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C6: which constraints are checked on existing rows, and in which tables.
    #[test]
    fn c6_constraints_that_read_rows() {
        for (kind, valid, not_valid) in [
            (
                ConstrType::CONSTR_UNIQUE,
                Some(RowsRead::Partitions),
                Some(RowsRead::Partitions),
            ),
            (
                ConstrType::CONSTR_PRIMARY,
                Some(RowsRead::Children),
                Some(RowsRead::Children),
            ),
            (ConstrType::CONSTR_CHECK, Some(RowsRead::Children), None),
            (ConstrType::CONSTR_NOTNULL, Some(RowsRead::Children), None),
            (ConstrType::CONSTR_FOREIGN, Some(RowsRead::Partitions), None),
            (ConstrType::CONSTR_DEFAULT, None, None),
            (ConstrType::CONSTR_NULL, None, None),
            (ConstrType::CONSTR_IDENTITY, None, None),
        ] {
            assert_eq!(checked(kind, false), valid, "{kind}");
            assert_eq!(checked(kind, true), not_valid, "{kind} NOT VALID");
        }
    }

    /// Of several commands, the one that reads most counts.
    #[test]
    fn the_widest_extent_counts() {
        assert!(RowsRead::Children > RowsRead::Partitions);
    }
}

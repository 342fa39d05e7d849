//! Statements on a table of Citus that change its label on all nodes: what follows in their transaction reaches
//! each node by one session.

use super::statement_kind::{AlterCommand, StatementKind};
use super::utility_statement::{UtilityStatement, table_of};
use crate::citus;
use crate::error::Result;
use crate::pg::catalog;
use crate::policy::Policy;
use crate::store::{label_of, seclabel};
use pgrx::pg_sys;

/// Before the statement; 25001 if a node has several sessions of the transaction.
pub(super) fn before(statement: &UtilityStatement<'_>) -> Result<()> {
    if !citus::is_present() {
        return Ok(());
    }
    if statement.kind != StatementKind::SetLabel {
        // Where Citus repeats it, on another node, it changes no label.
        let of_indexes = statement.indexes.iter().map(|&index| table_of(index));
        let mut tables = of_indexes.chain(statement.table);
        let changes = |&relid: &pg_sys::Oid| {
            citus::is_shell(relid) && label_of(relid).is_some_and(|label| names(&label, statement))
        };
        let changed = tables.find(changes).filter(|_| !citus::is_of_citus());
        return changed.map_or(Ok(()), citus::use_one_session);
    }
    let Some(relid) = statement.table.filter(|&relid| citus::is_shell(relid)) else {
        return Ok(());
    };
    if !seclabel::is_own_statement() {
        return citus::use_one_session(relid);
    }
    // The node that sends the label has checked all nodes before; this may be one of them.
    citus::check_only_session(relid)?;
    citus::one_at_a_time()
}

/// Whether the policy names what the statement renames or drops, and follows it.
fn names(policy: &Policy, statement: &UtilityStatement<'_>) -> bool {
    let is_column =
        |name: &str| policy.columns().any(|column| column == name) || policy.added.has_column(name);
    let is_named = |index: pg_sys::Oid| {
        let name = catalog::relation_name(index);
        policy.rule(&name).is_some() || policy.added.indexes.contains(&name)
    };
    // An index may go with what it is on, or has the name of its constraint.
    let has_rules = !policy.rules.is_empty();
    match statement.kind {
        StatementKind::RenameColumn => is_column(&statement.column),
        StatementKind::RenameRelation => statement.relation.is_some_and(is_named),
        StatementKind::RenameConstraint => has_rules,
        StatementKind::DropIndex => statement.indexes.iter().copied().any(is_named),
        StatementKind::AlterTable => statement.commands.iter().any(|command| match command {
            AlterCommand::DropColumn(name) => has_rules || is_column(name),
            AlterCommand::DropConstraint(_) => has_rules,
            _ => false,
        }),
        _ => false,
    }
}

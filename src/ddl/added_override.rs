//! A column `ttl` that is added to a table whose time to live has no column for overrides does not count: that is said.

use super::statement_kind::{AlterCommand, StatementKind};
use super::utility_statement::UtilityStatement;
use crate::error::Error;
use crate::pg::catalog::{self, qualified_name, quote_literal};
use crate::policy::Policy;
use crate::store::label_of;
use pgrx::pg_sys;

/// The name by which `ttl.enable` adds it.
const NAME: &str = "ttl";

/// The table to which the statement may add such a column.
pub(super) fn before(statement: &UtilityStatement<'_>) -> Option<pg_sys::Oid> {
    let adds = statement.kind == StatementKind::AlterTable
        && statement.commands.contains(&AlterCommand::AddColumn);
    let table = statement.relation.filter(|_| adds)?;
    let lacks = |policy: Policy| {
        policy.default_ttl.is_some() && policy.ts_column.is_some() && policy.ttl_column.is_none()
    };
    let is_new = catalog::attribute(table, NAME).is_none();
    label_of(table)
        .is_some_and(lacks)
        .then_some(table)
        .filter(|_| is_new)
}

pub(super) fn after(table: pg_sys::Oid) {
    let is_override = |column: catalog::Attribute| column.type_oid == pg_sys::INT4OID;
    if !catalog::attribute(table, NAME).is_some_and(is_override) {
        return;
    }
    let name = qualified_name(table);
    let call = quote_literal(&name);
    let default = label_of(table)
        .and_then(|policy| policy.default_ttl)
        .unwrap_or(-1);
    Error::for_notice(format!(
        "column {NAME} of table {name} is not the time to live of its rows"
    ))
    .detail("The table's time to live was turned on without a column for that.")
    .hint(format!(
        "To let the column count, with all rows as new as the change, run: SELECT ttl.disable({call}, drop_columns => true, revive_expired => true); SELECT ttl.enable({call}, {default}, ttl_column => '{NAME}');"
    ))
    .notice();
}

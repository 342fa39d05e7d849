//! Foreign keys that a statement adds or validates, by which expired rows take live ones along: PostgreSQL checks a
//! foreign key against all rows on disk, so that a live row may refer to an expired one from then on. ON DELETE CASCADE deletes it with
//! that, ON DELETE SET NULL and SET DEFAULT change it.

use super::utility_statement::{StatementKind, UtilityStatement};
use crate::deletion::purge_tables;
use crate::error::{Error, Result};
use crate::pg::abi::encoding;
use crate::pg::catalog::{self, roles};
use crate::pg::session::gate;
use crate::store::cache;
use pgrx::pg_sys;

/// A table, and its foreign keys that have an action and are validated.
pub(super) struct KeysBefore {
    table: pg_sys::Oid,
    keys: Vec<[String; 3]>,
}

/// Before a statement that reads rows; `None` if it adds no foreign key.
pub(super) fn before(statement: &UtilityStatement<'_>) -> Result<Option<KeysBefore>> {
    let may_add = statement.kind == StatementKind::AlterTable && statement.reads.is_some();
    let Some(table) = statement.relation.filter(|_| may_add) else {
        return Ok(None);
    };
    // The statement fails for others.
    if !roles::owns_relation(table, roles::current_user()) {
        return Ok(None);
    }
    let keys = keys(table)?;
    Ok(Some(KeysBefore { table, keys }))
}

/// After it: warns for each that is new.
pub(super) fn after(before: &KeysBefore) -> Result<()> {
    if catalog::class(before.table).is_none() {
        return Ok(());
    }
    for key in keys(before.table)? {
        if before.keys.contains(&key) {
            continue;
        }
        let [_, referenced, action] = &key;
        let referenced = pg_sys::Oid::from(referenced.parse::<u32>().unwrap_or_default());
        if has_expired(referenced) {
            warn(before.table, referenced, action);
        }
    }
    Ok(())
}

/// OID, referenced table and action of each.
fn keys(table: pg_sys::Oid) -> Result<Vec<[String; 3]>> {
    let enforced = if cfg!(since18) { "AND conenforced" } else { "" };
    let query = format!(
        "SELECT oid::pg_catalog.text, confrelid::pg_catalog.int8::pg_catalog.text, confdeltype::pg_catalog.text \
           FROM pg_catalog.pg_constraint \
          WHERE conrelid OPERATOR(pg_catalog.=) {}::pg_catalog.oid AND contype OPERATOR(pg_catalog.=) 'f' \
            AND confdeltype OPERATOR(pg_catalog.=) ANY ('{{c,n,d}}'::pg_catalog.\"char\"[]) AND convalidated {enforced}",
        table.to_u32()
    );
    encoding::texts::<3>(&query)
}

/// Whether expired rows of the table are on disk. Not asked of a table whose owner the user could not become.
fn has_expired(relid: pg_sys::Oid) -> bool {
    catalog::all_inheritors(relid).into_iter().any(|table| {
        cache::policy(table).is_some_and(|policy| policy.hides())
            && catalog::class(table).is_some_and(|class| !gate::is_untrusted(class.owner))
            && purge_tables::has_expired(table)
    })
}

fn warn(referencing: pg_sys::Oid, referenced: pg_sys::Oid, action: &str) {
    let (child, parent) = (
        catalog::qualified_name(referencing),
        catalog::qualified_name(referenced),
    );
    let what = match action {
        "c" => "are deleted with them",
        "n" => "are set to NULL there",
        _ => "are set to the default there",
    };
    Error::for_warning(format!(
        "rows of table {child} that refer to expired rows of table {parent} {what}"
    ))
    .detail("The foreign key was checked against all rows on disk, expired ones included.")
    .hint(format!(
        "To look for such rows before the expired ones are deleted, run: SELECT ttl.pause({});",
        catalog::quote_literal(&parent)
    ))
    .warn();
}

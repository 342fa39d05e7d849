//! DROP EXTENSION … CASCADE takes along the DEFAULT of a `_ts` that is NOT NULL, so that INSERT would fail: the
//! column gets the current time as its DEFAULT instead (W7).

use super::noted::NOTED;
use crate::error::Error;
use crate::pg::abi::report::or_raise;
use crate::pg::abi::{encoding, values};
use crate::pg::catalog::{self, qualified_name, quote_identifier, roles};
use crate::pg::session;
use crate::store::extension;
use pgrx::pg_sys;

/// Notes the columns, before a statement that may drop the extension.
pub(super) fn note() {
    if let Some(functions) = extension::functions() {
        let found = or_raise(columns_of(functions.current_ts));
        NOTED.change(|noted| noted.defaults = found);
    }
}

/// If the statement has dropped the extension, gives the columns that have lost their DEFAULT another.
pub(super) fn replace(columns: Vec<(pg_sys::Oid, i16)>) {
    if columns.is_empty() || extension::oid().is_some() {
        return;
    }
    let user = roles::current_user();
    let mut changed = Vec::new();
    for (table, attno) in columns {
        pgrx::check_for_interrupts!();
        let name = catalog::column_name(table, attno);
        let has_lost = |column: catalog::Attribute| column.not_null && !column.has_default;
        if !catalog::attribute(table, &name).is_some_and(has_lost)
            || !roles::owns_relation(table, user)
        {
            continue;
        }
        let column = quote_identifier(&name);
        let table = session::with_safe_search_path(|| {
            let table = qualified_name(table);
            let statement = format!(
                "ALTER TABLE ONLY {table} ALTER COLUMN {column} SET DEFAULT pg_catalog.now()"
            );
            or_raise(encoding::run(&statement).map_err(Error::from));
            table
        });
        changed.push(format!(
            "default value for column {column} of table {table}"
        ));
    }
    if !changed.is_empty() {
        let message = "columns that had ttl.current_ts() as their default now have now()";
        Error::for_notice(message)
            .detail(changed.join("\n"))
            .hint("They are NOT NULL. Drop them if they were added for a time to live.")
            .notice();
    }
}

fn columns_of(function: pg_sys::Oid) -> crate::error::Result<Vec<(pg_sys::Oid, i16)>> {
    let query = format!(
        "SELECT d.adrelid::pg_catalog.int8::pg_catalog.text, d.adnum::pg_catalog.text FROM pg_catalog.pg_depend AS u \
           JOIN pg_catalog.pg_attrdef AS d ON d.oid OPERATOR(pg_catalog.=) u.objid \
          WHERE u.refclassid OPERATOR(pg_catalog.=) {}::pg_catalog.oid AND u.refobjid OPERATOR(pg_catalog.=) {}::pg_catalog.oid \
            AND u.classid OPERATOR(pg_catalog.=) {}::pg_catalog.oid ORDER BY d.adrelid",
        pg_sys::ProcedureRelationId.to_u32(),
        function.to_u32(),
        pg_sys::AttrDefaultRelationId.to_u32()
    );
    let rows = values::texts::<2>(&query)?.into_iter();
    let columns = rows.filter_map(|[table, attno]| {
        let table = table.parse::<u32>().ok()?;
        Some((pg_sys::Oid::from(table), attno.parse().ok()?))
    });
    Ok(columns.collect())
}

//! Refuses statements that would remove what TTL needs (C11). Most are part of a migration with
//! another purpose: the HINT says how to proceed and keep the values, or TTL.

use crate::error::Error;
use crate::pg::catalog::{self, index};
use crate::store::label_of;
use pgrx::{PgSqlErrorCode, pg_sys};

/// What a policy needs and a statement would remove.
#[derive(Clone, Copy)]
pub(crate) enum Needed<'a> {
    /// A column of that name.
    Column(&'a str),
    /// A column's type.
    Type,
    /// The expression that computes the override from its document.
    Expression,
    /// The last index of its kind.
    Index,
    /// The trigger that frees keys.
    Trigger,
    /// The constraint on the override.
    Constraint,
    /// NOT NULL of the time that `ttl.enable` added.
    NotNull,
}

/// Refuses a statement that would remove from a table what the policy of `labelled_table` needs.
pub(crate) fn refuse(
    what: &str,
    needed: Needed<'_>,
    relid: pg_sys::Oid,
    labelled_table: pg_sys::Oid,
) -> ! {
    let table = catalog::qualified_name(relid);
    Error::new(
        PgSqlErrorCode::ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST,
        format!("cannot {what} because the time to live of table {table} needs it"),
    )
    .hint(advice(needed, labelled_table))
    .raise()
}

fn advice(needed: Needed<'_>, labelled_table: pg_sys::Oid) -> String {
    let table = catalog::quote_literal(&catalog::qualified_name(labelled_table));
    let for_good = format!(
        "To remove the time to live permanently, run: SELECT ttl.disable({table}, drop_columns => true)"
    );
    match needed {
        Needed::Column(name) => {
            let added =
                label_of(labelled_table).is_some_and(|policy| policy.added.has_column(name));
            if added {
                format!("Do not drop the column. {for_good}; it drops this column as well.")
            } else {
                format!(
                    "Do not drop the column. {for_good}; it keeps this column, which can be dropped then."
                )
            }
        }
        Needed::Type => format!(
            "Keep the type, and add another column for values of the new type. {for_good}; it drops the columns that ttl.enable() added and keeps the others."
        ),
        Needed::Expression => format!(
            "Keep the expression, which takes the override from the document. {for_good}; it drops the columns that ttl.enable() added and keeps the others."
        ),
        Needed::Index => format!(
            "Keep the index: expired rows are deleted by it. To replace it, create the new index first. {for_good};"
        ),
        Needed::Constraint => format!(
            "Keep the constraint: it makes sure that an override is -1 or a positive number of seconds. To replace it, add the new one first. {for_good}; it drops what ttl.enable() added."
        ),
        Needed::NotNull => format!(
            "Keep the constraint: a row without this time never expires. {for_good}; it drops this column as well."
        ),
        Needed::Trigger => format!(
            "Leave the trigger, by which keys of expired rows are free. {for_good}; The trigger goes as well."
        ),
    }
}

/// Refuses to change the type or expression of a column of a TTL index.
pub(super) fn refuse_change(
    what: &str,
    (relid, column): (pg_sys::Oid, &str),
    labelled_table: pg_sys::Oid,
    name: &str,
) -> ! {
    let shown = index::qualified_name(labelled_table, name);
    let index = catalog::quote_literal(&shown);
    let rule = label_of(labelled_table).and_then(|policy| policy.rule(name).cloned());
    let seconds = rule.as_ref().map_or(0, |rule| rule.expire_after_seconds);
    // PostgreSQL would convert by the session's TimeZone.
    let is_local = catalog::attribute(relid, column)
        .filter(|it| !it.generated)
        .is_some_and(|it| [pg_sys::TIMESTAMPOID, pg_sys::DATEOID].contains(&it.type_oid));
    let zone = rule
        .and_then(|rule| rule.time_zone)
        .unwrap_or("UTC".to_owned());
    let zone = match is_local {
        true => format!(
            " The values are local times: for type timestamptz, add to this statement: USING {column} AT TIME ZONE {zone}; for another one, add to the last call: time_zone => {zone}.",
            column = catalog::quote_identifier(column),
            zone = catalog::quote_literal(&zone)
        ),
        false => String::new(),
    };
    needed_by_rule(what, relid, &shown)
        .hint(format!(
            "Run in one transaction: SELECT ttl.expire_index({index}, NULL); (it deletes expired rows), this statement, SELECT ttl.expire_index({index}, {seconds}); (the new type must be a date or timestamp type).{zone}"
        ))
        .raise()
}

/// Refuses to make a TTL index a primary key.
pub(super) fn refuse_as_primary_key(what: &str, table: pg_sys::Oid, name: &str) -> ! {
    let shown = index::qualified_name(table, name);
    needed_by_rule(what, table, &shown)
        .hint("Create another unique index for the primary key; rows go on expiring by this one.")
        .raise()
}

fn needed_by_rule(what: &str, relid: pg_sys::Oid, index: &str) -> Error {
    let table = catalog::qualified_name(relid);
    Error::new(
        PgSqlErrorCode::ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST,
        format!("cannot {what} because rows of table {table} expire by TTL index {index}"),
    )
}

//! What a new time to live means for other objects: foreign keys, publications, users of the row type.
//! Each is said in a NOTICE, once the change is made.

use super::problem::is_own;
use crate::error::{Error, Result};
use crate::pg::abi::values;
use crate::pg::catalog::{self, names, qualified_name, quote_identifier, quote_literal};
use crate::pg::exec::relation::OpenRelation;
use crate::pg::session::{self, locks};
use crate::policy::Policy;
use crate::store::governing_label;
use pgrx::pg_sys;

/// The most objects of a kind that are named.
const NAMED: usize = 10;

/// How many updated rows tell how a table is used.
const MANY_UPDATES: u64 = 1_000;

/// Of a table whose rows begin to expire, and that has got these columns; `unindexed` is the column that each UPDATE
/// changes, if it gets no index.
pub(in crate::api) fn tell(
    relid: pg_sys::Oid,
    added: &[String],
    unindexed: Option<&str>,
) -> Result<()> {
    temporary(relid);
    session::with_safe_search_path(|| {
        if !added.is_empty() {
            row_type(relid, added)?;
            publications(relid, added)?;
            foreign_tables(relid, added);
        }
        replica_identity(relid);
        if let Some(column) = unindexed {
            room_for_updates(relid, column)?;
        }
        foreign_keys(relid)
    })
}

/// The columns of a policy that the table does not have yet.
pub(in crate::api) fn new_columns(relid: pg_sys::Oid, policy: &Policy) -> Vec<String> {
    let columns = policy.ts_column.iter().chain(&policy.ttl_column);
    let is_new = |name: &&String| catalog::attribute(relid, name).is_none();
    columns.filter(is_new).cloned().collect()
}

/// The table's name; of a temporary one, that which its session can write.
fn name_here(relid: pg_sys::Oid) -> String {
    match is_temporary(relid) {
        true => format!(
            "pg_temp.{}",
            quote_identifier(&catalog::relation_name(relid))
        ),
        false => qualified_name(relid),
    }
}

fn is_temporary(relid: pg_sys::Oid) -> bool {
    catalog::class(relid).is_some_and(|class| class.persistence == pg_sys::RELPERSISTENCE_TEMP)
}

/// No background process sees such a table.
fn temporary(relid: pg_sys::Oid) {
    if !is_temporary(relid) {
        return;
    }
    let table = name_here(relid);
    Error::for_notice(format!(
        "expired rows of temporary table {table} are not deleted in the background"
    ))
    .detail("They are hidden. Only the session that has created the table can delete them.")
    .hint(format!(
        "To delete them, run: SELECT ttl.purge({});",
        quote_literal(&table)
    ))
    .notice();
}

/// W8: says which columns the table has got.
pub(in crate::api) fn tell_of_new_columns(relid: pg_sys::Oid, added: &[String]) {
    if added.is_empty() {
        return;
    }
    let (table, columns) = (name_here(relid), shown(added));
    Error::for_notice(format!(
        "table {table} has new columns, which SELECT * and RETURNING * return: {columns}"
    ))
    .notice();
}

/// What is named of more than [`NAMED`] objects.
fn listed(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    match more {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// Functions and columns whose type is that of the table's rows.
fn row_type(relid: pg_sys::Oid, added: &[String]) -> Result<()> {
    let query = format!(
        "SELECT DISTINCT pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid) COLLATE pg_catalog.\"C\" AS name \
           FROM pg_catalog.pg_type AS t JOIN pg_catalog.pg_depend AS d \
             ON d.refclassid OPERATOR(pg_catalog.=) {}::pg_catalog.oid \
            AND (d.refobjid OPERATOR(pg_catalog.=) t.oid OR d.refobjid OPERATOR(pg_catalog.=) t.typarray) \
          WHERE t.typrelid OPERATOR(pg_catalog.=) {}::pg_catalog.oid AND d.deptype OPERATOR(pg_catalog.=) 'n' \
          ORDER BY name",
        pg_sys::TypeRelationId.to_u32(),
        relid.to_u32()
    );
    let users = values::texts::<1>(&query)?.into_iter().map(|[name]| name);
    let users: Vec<String> = users.collect();
    if users.is_empty() {
        return Ok(());
    }
    let message = format!(
        "the row type of table {} has new columns: {}",
        qualified_name(relid),
        shown(added)
    );
    Error::for_notice(message)
        .detail(format!("It is used by {}.", listed(users)))
        .hint("A function that returns such rows must return the new columns, too. ttl.expire_after() lets rows expire by an existing column and adds none.")
        .notice();
    Ok(())
}

/// A foreign table below it has the columns now, but not what it stands for.
fn foreign_tables(relid: pg_sys::Oid, added: &[String]) {
    let is_foreign = |table: &pg_sys::Oid| {
        catalog::class(*table).is_some_and(|class| class.relkind == pg_sys::RELKIND_FOREIGN_TABLE)
    };
    let tables = catalog::all_inheritors(relid)
        .into_iter()
        .filter(is_foreign);
    for table in tables.take(NAMED).map(qualified_name) {
        Error::for_warning(format!("foreign table {table} has new columns: {}", shown(added)))
            .detail("What it stands for on the remote server need not have them: then queries that read them there fail.")
            .hint(format!("Add them there, too: {}.", additions(relid, added)))
            .warn();
    }
}

/// The OIDs of the table and of all that inherit from it, for an array.
fn with_children(relid: pg_sys::Oid) -> String {
    let tables = catalog::all_inheritors(relid).into_iter();
    let oids: Vec<String> = tables.map(|table| table.to_u32().to_string()).collect();
    oids.join(",")
}

/// Subscribers have to have the columns, too.
fn publications(relid: pg_sys::Oid, added: &[String]) -> Result<()> {
    let sent = |column: &String| {
        format!(
            "{}::pg_catalog.name OPERATOR(pg_catalog.=) ANY (t.attnames)",
            quote_literal(column)
        )
    };
    let sent: Vec<String> = added.iter().map(sent).collect();
    let query = format!(
        "SELECT pg_catalog.quote_ident(t.pubname::pg_catalog.text), pg_catalog.bool_and({})::pg_catalog.text \
           FROM pg_catalog.pg_publication_tables AS t \
           JOIN pg_catalog.pg_namespace AS n ON n.nspname OPERATOR(pg_catalog.=) t.schemaname \
           JOIN pg_catalog.pg_class AS c ON c.relname OPERATOR(pg_catalog.=) t.tablename \
            AND c.relnamespace OPERATOR(pg_catalog.=) n.oid \
          WHERE c.oid OPERATOR(pg_catalog.=) ANY ('{{{}}}'::pg_catalog.oid[]) GROUP BY t.pubname ORDER BY t.pubname",
        sent.join(" AND "),
        with_children(relid)
    );
    let table = qualified_name(relid);
    let columns = shown(added);
    for [publication, sent] in values::texts::<2>(&query)? {
        if sent == "true" {
            let message = format!("publication {publication} sends {columns} of table {table}");
            Error::for_notice(message)
                .detail("A subscriber whose table lacks them stops with an error at the next change.")
                .hint(format!(
                    "Turn the time to live on for the table of each subscriber, too, or run there: ALTER TABLE {table} {};",
                    additions(relid, added)
                ))
                .notice();
        } else {
            let message =
                format!("publication {publication} does not send {columns} of table {table}");
            Error::for_notice(message)
                .detail("The publication has a column list. On a subscriber with a time to live, rows expire counted from their arrival.")
                .hint("To send them, too, name them in that list: ALTER PUBLICATION ... SET TABLE ...")
                .notice();
        }
    }
    Ok(())
}

/// The commands of ALTER TABLE that add these columns of the table to another.
fn additions(relid: pg_sys::Oid, columns: &[String]) -> String {
    let additions = columns.iter().filter_map(|name| {
        let column = catalog::attribute(relid, name)?;
        let type_name = names::of_type(column.type_oid);
        Some(format!("ADD COLUMN {} {type_name}", quote_identifier(name)))
    });
    additions.collect::<Vec<_>>().join(", ")
}

fn shown(columns: &[String]) -> String {
    let quoted = columns.iter().map(|name| quote_identifier(name));
    quoted.collect::<Vec<_>>().join(", ")
}

/// Deletions that a publication refuses.
fn replica_identity(relid: pg_sys::Oid) {
    let is_refused = |table: &pg_sys::Oid| {
        catalog::has_rows(*table)
            && locks::try_relation(*table, pg_sys::AccessShareLock)
            && catalog::class(*table).is_some()
            && !OpenRelation::locked(*table).passes_replica_identity_check()
    };
    let tables = catalog::all_inheritors(relid).into_iter();
    let Some(table) = tables.take(NAMED).find(is_refused) else {
        return;
    };
    let table = qualified_name(table);
    let message = format!("expired rows of table {table} cannot be deleted");
    Error::for_notice(message)
        .detail("The table is in a publication that sends deletions, but has no replica identity that the publication sends, so subscribers cannot identify deleted rows.")
        .hint(format!(
            "Add a primary key, or run: ALTER TABLE {table} REPLICA IDENTITY FULL;"
        ))
        .notice();
}

/// C11: the table or partition whose UPDATEs, which also change this column, would be heap-only if its blocks had room.
fn room_for_updates(relid: pg_sys::Oid, column: &str) -> Result<()> {
    let query = format!(
        "SELECT c.oid::pg_catalog.int8::pg_catalog.text, u.updated::pg_catalog.text, u.hot::pg_catalog.text \
           FROM pg_catalog.pg_class AS c CROSS JOIN LATERAL (SELECT \
                pg_catalog.pg_stat_get_tuples_updated(c.oid), pg_catalog.pg_stat_get_tuples_hot_updated(c.oid)) AS u (updated, hot) \
          WHERE c.oid OPERATOR(pg_catalog.=) ANY ('{{{}}}'::pg_catalog.oid[]) \
            AND c.relkind OPERATOR(pg_catalog.=) 'r' AND c.relhasindex \
            AND NOT EXISTS (SELECT FROM pg_catalog.pg_options_to_table(c.reloptions) AS o \
                             WHERE o.option_name OPERATOR(pg_catalog.=) 'fillfactor') \
            AND NOT EXISTS (SELECT FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_attribute AS a \
                                ON a.attrelid OPERATOR(pg_catalog.=) i.indrelid AND a.attnum OPERATOR(pg_catalog.=) ANY (i.indkey) \
                             WHERE i.indrelid OPERATOR(pg_catalog.=) c.oid AND a.attname OPERATOR(pg_catalog.=) {}) \
            AND u.updated OPERATOR(pg_catalog.>=) {MANY_UPDATES} \
            AND u.hot OPERATOR(pg_catalog.<) (u.updated OPERATOR(pg_catalog./) 2) \
          ORDER BY u.hot OPERATOR(pg_catalog.-) u.updated, c.oid LIMIT 1",
        with_children(relid),
        quote_literal(column)
    );
    for [table, all, hot] in values::texts::<3>(&query)? {
        let table = qualified_name(pg_sys::Oid::from(table.parse::<u32>().unwrap_or_default()));
        Error::for_notice(format!("most UPDATEs of table {table} write to its indexes"))
            .detail(format!(
                "Of {all} updated rows, {hot} stayed in their block. With the time to live they still can, as no index contains column {}.",
                quote_identifier(column)
            ))
            .hint(format!(
                "If these UPDATEs change no indexed column, leave room in blocks that are written from now on: ALTER TABLE {table} SET (fillfactor = 90);"
            ))
            .notice();
    }
    Ok(())
}

/// A foreign key by which rows that refer to expired ones keep these.
struct KeepingKey {
    /// As it is in the catalog.
    name: String,
    child: pg_sys::Oid,
    /// The action that it has on DELETE.
    action: String,
    /// What the better action does, and the statement that gives the key that action, if there is one.
    change: Option<(&'static str, String)>,
}

/// The foreign keys by which rows that refer to expired ones of the table keep these.
fn keeping_keys(relid: pg_sys::Oid) -> Result<Vec<KeepingKey>> {
    let query = format!(
        "SELECT c.conname::pg_catalog.text, c.conrelid::pg_catalog.int8::pg_catalog.text, \
                pg_catalog.pg_get_constraintdef(c.oid), \
                CASE WHEN c.confdeltype OPERATOR(pg_catalog.=) 'r' THEN 'RESTRICT' ELSE 'NO ACTION' END, \
                pg_catalog.bool_or(a.attnotnull)::pg_catalog.text, {}::pg_catalog.text \
           FROM pg_catalog.pg_constraint AS c JOIN pg_catalog.pg_attribute AS a \
             ON a.attrelid OPERATOR(pg_catalog.=) c.conrelid AND a.attnum OPERATOR(pg_catalog.=) ANY (c.conkey) \
          WHERE c.contype OPERATOR(pg_catalog.=) 'f' AND c.confrelid OPERATOR(pg_catalog.=) {}::pg_catalog.oid \
            AND c.confdeltype OPERATOR(pg_catalog.=) ANY ('{{a,r}}'::pg_catalog.\"char\"[]) \
            AND c.conparentid OPERATOR(pg_catalog.=) 0::pg_catalog.oid {} \
          GROUP BY c.oid ORDER BY c.conrelid, c.conname",
        if cfg!(since18) {
            "c.conperiod"
        } else {
            "false"
        },
        relid.to_u32(),
        if cfg!(since18) {
            "AND c.conenforced"
        } else {
            ""
        }
    );
    let keys = values::texts::<6>(&query)?.into_iter();
    let keys = keys.map(|[name, child, definition, action, not_null, period]| {
        let child = pg_sys::Oid::from(child.parse::<u32>().unwrap_or_default());
        let (what, better) = if child == relid && not_null == "false" {
            ("references set to NULL", "SET NULL")
        } else {
            ("referring rows deleted with them", "CASCADE")
        };
        let change = || {
            format!(
                "ALTER TABLE {} DROP CONSTRAINT {quoted}, ADD CONSTRAINT {quoted} {};",
                qualified_name(child),
                acting(&definition, better),
                quoted = quote_identifier(&name)
            )
        };
        // PostgreSQL has no other action for a key with PERIOD.
        let change = (period == "false").then(|| (what, change()));
        KeepingKey {
            name,
            child,
            action,
            change,
        }
    });
    Ok(keys.collect())
}

/// W4: those of tables whose rows do not expire, too.
fn foreign_keys(relid: pg_sys::Oid) -> Result<()> {
    let expires = |table| governing_label(table).is_some_and(|it| it.policy.is_on());
    let keys = keeping_keys(relid)?.into_iter();
    let lasting = keys.filter(|key| key.child == relid || !expires(key.child));
    for key in lasting.take(NAMED) {
        let (table, child) = (qualified_name(relid), qualified_name(key.child));
        let message = format!(
            "expired rows of table {table} stay on disk while rows of table {child} refer to them"
        );
        Error::for_notice(message)
            .detail(format!(
                "Foreign key {} has ON DELETE {}. Other unique keys of such rows cannot be used again.",
                quote_identifier(&key.name),
                key.action
            ))
            .hint(match key.change {
                Some((what, change)) => format!("To have the {what}, run: {change}"),
                None => format!(
                    "PostgreSQL has no other action for a key with PERIOD. Give table {child} a time to live that ends no later, or delete its rows first."
                ),
            })
            .notice();
    }
    Ok(())
}

/// The statement that lets rows of the table be deleted that could not for this error, if it is one of a foreign key.
/// The error is in the server's language, but has the names. `None` where one of the tables is another's: to
/// check the new key, PostgreSQL runs what is in their indexes as the one who runs it.
pub(in crate::api) fn remedy(relid: pg_sys::Oid, error: &str) -> Option<String> {
    let names = |name: &str| error.contains(&format!("\"{name}\""));
    let keys = session::with_safe_search_path(|| keeping_keys(relid)).ok()?;
    let mut keys = keys
        .into_iter()
        .filter(|key| names(&key.name) && names(&catalog::relation_name(key.child)));
    let key = keys.next().filter(|_| keys.next().is_none())?;
    if !is_own(relid) || !is_own(key.child) {
        return None;
    }
    let (what, change) = key.change?;
    Some(format!("/* To have the {what}: */ {change}"))
}

/// The definition of a foreign key, with this action on DELETE.
fn acting(definition: &str, action: &str) -> String {
    let definition = definition.replace(" ON DELETE RESTRICT", "");
    let options = [" DEFERRABLE", " NOT VALID", " NOT ENFORCED"];
    let at = options.iter().filter_map(|option| definition.rfind(option));
    let at = at.min().unwrap_or(definition.len());
    let (key, rest) = definition.split_at(at);
    format!("{key} ON DELETE {action}{rest}")
}

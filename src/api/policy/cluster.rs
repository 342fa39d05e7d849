//! Tables of Citus: what a time to live needs of them, and is refused otherwise (C35, 0A000).

use crate::citus::{self, CitusRole};
use crate::error::{Error, Result};
use crate::pg::abi::encoding;
use crate::pg::catalog::{self, names, qualified_name, roles};
use crate::pg::session::{gate, rewording};
use pgrx::{PgSqlErrorCode, pg_sys};

/// Since this version Citus sends SECURITY LABEL of tables to all nodes.
const OLDEST: (u32, u32) = (13, 1);

/// For a transaction that still uses the table.
const BY_ITSELF: &str = "COMMIT first, or close the cursor: this changes the table itself.";

/// Refuses shards, whose time to live is their table's, and tables that cannot have one. Costs a
/// server without Citus one comparison, but for columnar tables.
pub(in crate::api) fn check(relid: pg_sys::Oid) -> Result<()> {
    if is_columnar(relid) {
        return Err(refused(relid)
            .detail("It is columnar: its rows cannot be deleted one by one.")
            .hint("Partition it by RANGE, with columnar partitions, and set the time to live on the partitioned table with drop_partitions => true."));
    }
    match citus::part(relid) {
        None => Ok(()),
        Some(CitusRole::Shard(table)) => {
            let table = qualified_name(table);
            Err(refused(relid)
                .detail(format!("It is a shard of table {table}."))
                .hint(format!("Set it on {table}: it holds for all shards.")))
        }
        Some(CitusRole::Shell) => check_version(relid),
    }
}

fn check_version(relid: pg_sys::Oid) -> Result<()> {
    let version = names::extension_version(c"citus");
    let Some(version) = version.filter(|version| is_older(version)) else {
        return Ok(());
    };
    let (major, minor) = OLDEST;
    Err(refused(relid)
        .detail(format!(
            "Citus {version} does not send its label to the other nodes."
        ))
        .hint(format!("Update Citus to {major}.{minor} or newer.")))
}

/// Whether a version such as `13.0-1` is before the oldest that serves.
fn is_older(version: &str) -> bool {
    let mut parts = version.split(|letter: char| !letter.is_ascii_digit());
    let mut number = || parts.next().and_then(|part| part.parse::<u32>().ok());
    match (number(), number()) {
        (Some(major), minor) => (major, minor.unwrap_or(0)) < OLDEST,
        (None, _) => false,
    }
}

/// Before a change of the policy of a table of Citus: what follows in the transaction reaches each node by one
/// session, or 25001.
pub(in crate::api) fn begin_change(relid: pg_sys::Oid) -> Result<()> {
    if citus::is_shell(relid) {
        citus::use_one_session(relid)?;
    }
    Ok(())
}

/// Runs a statement that changes the table itself, before or after its label.
///
/// It names the table, and a schema can be renamed at any time. Of a table that has the name by then, PostgreSQL would evaluate what is added,
/// with the casts of that one's types. Where a role that could not act as the current user can do that, the statement runs as the table's owner.
///
/// 42501 if the owner may not use the schema, or a table that inherits is another's.
pub(in crate::api) fn alter(relid: pg_sys::Oid, statement: &str) -> Result<()> {
    let class = catalog::class(relid).filter(|_| !citus::is_shell(relid));
    let renamed_by = |class: catalog::Class| {
        let other = roles::renamer(class.namespace, roles::current_user())?;
        Some((class, other))
    };
    match class.and_then(renamed_by) {
        Some((class, other)) => {
            check_owner(relid, &class, other)?;
            gate::visit(class.owner, |_| run(relid, statement))
        }
        None => run(relid, statement),
    }
}

/// Whether the owner can alter the table by its name, and what inherits from it.
fn check_owner(relid: pg_sys::Oid, class: &catalog::Class, other: pg_sys::Oid) -> Result<()> {
    let (table, owner) = (
        qualified_name(relid),
        catalog::quote_identifier(&roles::name(class.owner)),
    );
    let told = |denied: Error, statement: String| {
        let detail = format!(
            "Table {table} is altered as its owner, {owner}, since {} can rename the schema meanwhile.",
            catalog::quote_identifier(&roles::name(other))
        );
        let hint = format!("First run: {statement};");
        Err(denied.detail(detail).hint(hint))
    };
    if !roles::may_use_schema(class.namespace, class.owner) {
        let schema = catalog::schema_name(class.namespace);
        let denied = Error::denied(format!(
            "the owner of table {table}, {owner}, may not use schema {schema}"
        ));
        return told(denied, format!("GRANT USAGE ON SCHEMA {schema} TO {owner}"));
    }
    let is_anothers = |&below: &pg_sys::Oid| !roles::owns_relation(below, class.owner);
    if let Some(below) = catalog::all_inheritors(relid).into_iter().find(is_anothers) {
        let its = catalog::owner(below).map_or(String::new(), roles::name);
        let below = qualified_name(below);
        let denied = Error::denied(format!(
            "table {below} belongs to {its}, and not to {owner}"
        ));
        return told(denied, format!("ALTER TABLE {below} OWNER TO {owner}"));
    }
    Ok(())
}

/// As [`alter`], but as the current user: for CREATE INDEX, in which PostgreSQL itself runs a table's code as its owner, who may have no right to
/// create anything in the schema.
///
/// Of a statement in a transaction of its own, Citus changes several shards of this node by another session; this one,
/// which puts the trigger on them or takes it away, would wait for that for ever. In a DO block it changes them in this one.
pub(in crate::api) fn run(relid: pg_sys::Oid, statement: &str) -> Result<()> {
    let statement = match citus::is_shell(relid) {
        true => {
            let block = format!("BEGIN EXECUTE {}; END", catalog::quote_literal(statement));
            format!("DO LANGUAGE plpgsql {}", catalog::quote_literal(&block))
        }
        false => statement.to_owned(),
    };
    // PostgreSQL's HINT is to use CASCADE, which is for its own statement.
    let code = PgSqlErrorCode::ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST;
    let hint = "First drop the objects that depend on it, or change them so that they do not.";
    // Of an open cursor, or of foreign keys that are checked at the end.
    let in_use = PgSqlErrorCode::ERRCODE_OBJECT_IN_USE;
    Ok(rewording::hinting_at(in_use, BY_ITSELF, || {
        rewording::replacing_hint_at(code, hint, || encoding::run(&statement))
    })?)
}

/// As [`alter`], for a statement that must not change another table instead. It names the table, and a schema can be renamed at any time:
/// if what it was to do is not done then, 55000 undoes what it has done to the other.
pub(in crate::api) fn alter_itself(
    relid: pg_sys::Oid,
    statement: &str,
    is_done: impl FnOnce() -> bool,
) -> Result<()> {
    let name = qualified_name(relid);
    alter(relid, statement)?;
    match is_done() {
        true => Ok(()),
        false => Err(renamed(&name)),
    }
}

/// 55000: a statement has changed another table, which an error undoes.
pub(super) fn renamed(name: &str) -> Error {
    Error::not_ready(format!("another table has become {name} meanwhile"))
        .detail("Neither has been changed.")
        .hint("Try again.")
}

/// Refuses DDL of a table of Citus on another node than the coordinator, before anything is done.
pub(in crate::api) fn check_node(relid: pg_sys::Oid, what: &str) -> Result<()> {
    if !citus::is_shell(relid) || citus::is_coordinator() {
        return Ok(());
    }
    let message = format!("{what} is not supported on this node");
    Err(
        Error::unsupported(message)
            .detail(format!(
                "It changes the columns or indexes of table {}, which only the coordinator of Citus can do.",
                qualified_name(relid)
            ))
            .hint("Connect to the coordinator, and run it there."),
    )
}

/// Refuses an option or a function that does not work on tables of Citus.
pub(in crate::api) fn refuse_on_shell(relid: pg_sys::Oid, what: &str, hint: &str) -> Result<()> {
    if !citus::is_shell(relid) {
        return Ok(());
    }
    let table = qualified_name(relid);
    let message = format!("{what} is not supported on table {table}");
    Err(Error::unsupported(message)
        .detail("Its rows are in shards of Citus, on several nodes.")
        .hint(hint))
}

/// Columnar partitions are dropped as a whole, or stay.
pub(in crate::api) fn check_partitions(relid: pg_sys::Oid, drop_partitions: bool) -> Result<()> {
    let columnar = catalog::all_inheritors(relid)
        .into_iter()
        .find(|&table| is_columnar(table));
    let Some(partition) = columnar.filter(|_| !drop_partitions) else {
        return Ok(());
    };
    let partition = qualified_name(partition);
    Err(refused(relid)
        .detail(format!(
            "Partition {partition} is columnar: its rows cannot be deleted one by one."
        ))
        .hint(
            "Give drop_partitions => true to ttl.enable() or ttl.expire_index(): partitions are dropped when all their rows are expired.",
        ))
}

/// Whether the table's access method is that of Citus for columns.
fn is_columnar(relid: pg_sys::Oid) -> bool {
    catalog::access_method(relid).is_some_and(|method| {
        method.to_u32() >= pg_sys::FirstNormalObjectId
            && catalog::access_method_name(method) == "columnar"
    })
}

fn refused(relid: pg_sys::Oid) -> Error {
    let message = format!("cannot set a time to live on {}", qualified_name(relid));
    Error::unsupported(message)
}

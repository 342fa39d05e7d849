//! `SECURITY LABEL FOR ttl ON TABLE …`: which labels may be stored.

use super::cache::own_label;
use super::{label_of, labels as all_labels, seclabel, succession};
use crate::citus::{self, Doing};
use crate::error::{Error, Result};
use crate::pg::abi::encoding;
use crate::pg::abi::report::or_raise;
use crate::pg::catalog::names::RelationName;
use crate::pg::catalog::syntax::Node;
use crate::pg::catalog::{self, roles};
use crate::pg::server::background;
use crate::pg::session::{self, labels};
use crate::policy::{LocalState, Policy, Shortened};
use crate::settings;
use pgrx::{PgSqlErrorCode, pg_sys};

/// Registers the provider; once, at load.
pub(crate) fn init() {
    labels::register(seclabel::PROVIDER, |object, label| {
        let relid = object.objectId;
        or_raise(check(object, label));
        if label.is_none() && !seclabel::is_own_statement() {
            succession::before_end(relid);
        }
        seclabel::about_to_change(relid);
        seclabel::set_local(relid, local_state(relid, label));
    });
}

/// What the extension remembers of the table once a statement has stored this label: nothing, if the
/// label may come from a dump of another table. Then deletion waits for `ttl.resume`
/// (`docs/decisions/0070-what-waits.md`).
fn local_state(relid: pg_sys::Oid, label: Option<&str>) -> Option<LocalState> {
    let policy = Policy::parse(label?).ok()?;
    // A shard follows its table. Until it is one, it has no policy in force: rows of a copy are not to be
    // deleted before all that has happened to them since the copy began has arrived.
    if citus::is_doing(Doing::Making) {
        return None;
    }
    if session::is_binary_upgrade() {
        // pg_upgrade creates the same table.
        let owner = catalog::class(relid)?.owner;
        return Some(LocalState::upgraded(owner.to_u32()));
    }
    let predecessor = predecessor(relid);
    if !seclabel::is_own_statement() && predecessor.is_none() {
        return None;
    }
    // The node that sends the label knows of changes on that node only.
    let former = label_of(relid).or(predecessor);
    let mut local = former
        .as_ref()
        .map_or_else(LocalState::default, |former| former.local);
    let delay = settings::change_delay();
    if delay > 0 && policy.shortens(former.as_ref()) {
        let changed = Shortened::again(local.shortened, background::now(), delay);
        local.shortened = Some(changed);
    }
    Some(local)
}

/// The policy of the table whose place this one takes: Citus makes a table of another kind, gives it the label, and
/// then the name.
fn predecessor(relid: pg_sys::Oid) -> Option<Policy> {
    if citus::is_known_to_be_absent() {
        return None;
    }
    let mut all = all_labels().into_iter();
    let found = all.find(|(of, policy)| !policy.restored && citus::is_successor(relid, *of));
    found.map(|(_, policy)| policy)
}

/// Marks the label of a statement as restored, except in pg_upgrade and where the extension or Citus
/// runs the statement. Returns the statement to run instead.
pub(crate) fn mark_restored(
    planned: Node<'_, pg_sys::PlannedStmt>,
) -> Option<*mut pg_sys::PlannedStmt> {
    let stmt = planned.node(|planned| &planned.utilityStmt)?;
    let stmt = stmt.cast::<pg_sys::SecLabelStmt>()?;
    let label = stmt.text(|stmt| &stmt.label)?;
    if !seclabel::is_ours(stmt) || session::is_binary_upgrade() || seclabel::is_own_statement() {
        return None;
    }
    let named = || stmt.node(|stmt| &stmt.object)?.cast::<pg_sys::List>();
    let table = || named().and_then(|names| RelationName::Parts(names, names.length).resolve());
    if !citus::is_known_to_be_absent() && table().and_then(predecessor).is_some() {
        return None;
    }
    let mut policy = Policy::parse(&encoding::given(label)).ok()?;
    if std::mem::replace(&mut policy.restored, true) {
        return None;
    }
    let text = encoding::to_server(&policy.to_label())?;
    Some(labels::with_label(planned, &text))
}

fn check(object: &pg_sys::ObjectAddress, label: Option<&str>) -> Result<()> {
    if object.classId != pg_sys::RelationRelationId || object.objectSubId != 0 {
        return Err(Error::wrong_kind("time to live can be set on tables only")
            .hint("Use SECURITY LABEL FOR ttl ON TABLE ..., or SELECT ttl.enable('...')."));
    }
    check_relation(object.objectId)?;
    let Some(label) = label else { return Ok(()) };
    let policy = Policy::parse(label).map_err(|error| Error::invalid_label(&error))?;
    if policy.is_on() {
        check_tables_above(object.objectId)?;
    }
    check_columns(object.objectId, &policy)
}

/// Refuses a policy of its own to a table below one of another owner's: writes through that one, of other rows, too, would be
/// refused.
pub(crate) fn check_tables_above(relid: pg_sys::Oid) -> Result<()> {
    // What it stops it stops already.
    if own_label(relid).is_some_and(|present| present.is_on()) {
        return Ok(());
    }
    let user = roles::current_user();
    let mut above = catalog::ancestors(relid).into_iter();
    let Some(other) = above.find(|&table| !roles::owns_relation(table, user)) else {
        return Ok(());
    };
    let (table, other) = (
        catalog::qualified_name(relid),
        catalog::qualified_name(other),
    );
    Err(Error::denied(format!("must be owner of table {other}"))
        .detail(format!("Table {table} is a partition or child of it. A time to live of its own would stop what others write through {other}."))
        .hint(format!("Have the owner of {other} set a time to live there: it holds for all partitions and children.")))
}

/// Refuses relations that cannot have a time to live.
pub(crate) fn check_relation(relid: pg_sys::Oid) -> Result<()> {
    let wrong = |detail: &str, hint: &str| {
        let name = catalog::qualified_name(relid);
        Error::wrong_kind(format!("{name} cannot have a time to live"))
            .detail(detail)
            .hint(hint)
    };
    let Some(class) = catalog::class(relid) else {
        let message = format!("relation with OID {} does not exist", relid.to_u32());
        let error = Error::new(PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE, message);
        return Err(error
            .detail("No table has this OID, or it was dropped meanwhile.")
            .hint("Give the table by its name, such as 'public.orders'."));
    };
    if relid.to_u32() < pg_sys::FirstNormalObjectId {
        return Err(wrong("It is a system catalog.", "Use a table of your own."));
    }
    if class.is_other_temporary() {
        return Err(wrong(
            "It is a temporary table of another session.",
            "Only its own session can use it.",
        ));
    }
    match class.relkind {
        pg_sys::RELKIND_RELATION | pg_sys::RELKIND_PARTITIONED_TABLE => Ok(()),
        pg_sys::RELKIND_VIEW => Err(wrong(
            "It is a view.",
            "Set it on the tables that the view reads.",
        )),
        pg_sys::RELKIND_MATVIEW => Err(wrong(
            "It is a materialized view.",
            "Set it on the tables that the view reads, and refresh it.",
        )),
        pg_sys::RELKIND_FOREIGN_TABLE => Err(wrong(
            "It is a foreign table.",
            "Set it on the table in the remote database.",
        )),
        _ => Err(wrong(
            "It is not a table.",
            "Use an ordinary or a partitioned table.",
        )),
    }
}

/// For a column that `ttl.enable` can add.
const ADDED: &str = "ttl.enable() adds the columns _ts and ttl if no others are named.";

/// Checks that the policy's columns exist and have the right types.
pub(crate) fn check_columns(relid: pg_sys::Oid, policy: &Policy) -> Result<()> {
    if let Some(name) = &policy.ts_column {
        let type_name = "timestamp with time zone";
        check_column(relid, name, pg_sys::TIMESTAMPTZOID, type_name, ADDED)?;
        if catalog::attribute(relid, name).is_some_and(|column| column.generated) {
            let table = catalog::qualified_name(relid);
            let message = format!("column \"{name}\" of table {table} is a generated column");
            return Err(Error::wrong_kind(message).hint("Name an ordinary column in ts_column."));
        }
    }
    if let Some(name) = &policy.ttl_column {
        check_column(relid, name, pg_sys::INT4OID, "integer", ADDED)?;
    }
    if let Some(name) = &policy.document_column {
        check_document_column(relid, name)?;
    }
    Ok(())
}

/// D1: the override's document must be jsonb.
pub(crate) fn check_document_column(relid: pg_sys::Oid, name: &str) -> Result<()> {
    let hint = "Name an existing column of type jsonb in document_column.";
    check_column(relid, name, pg_sys::JSONBOID, "jsonb", hint)
}

fn check_column(
    relid: pg_sys::Oid,
    name: &str,
    type_oid: pg_sys::Oid,
    type_name: &str,
    if_missing: &str,
) -> Result<()> {
    let table = catalog::qualified_name(relid);
    match catalog::attribute(relid, name) {
        None => {
            let message = format!("column \"{name}\" of table {table} does not exist");
            Err(Error::new(PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN, message).hint(if_missing))
        }
        Some(column) if column.type_oid != type_oid => {
            let message = format!("column \"{name}\" of table {table} is not of type {type_name}");
            let way = match (column.type_oid, type_oid) {
                (pg_sys::JSONOID, pg_sys::JSONBOID) => format!(
                    "To give it that type, run: ALTER TABLE {table} ALTER COLUMN {} TYPE jsonb;",
                    catalog::quote_identifier(name)
                ),
                _ => "Name an existing column of that type.".to_owned(),
            };
            Err(
                Error::new(PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH, message)
                    .detail("Time to live needs a column of exactly this type.")
                    .hint(way),
            )
        }
        Some(_) => Ok(()),
    }
}

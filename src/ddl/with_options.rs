//! `ttl.*` in `CREATE TABLE … WITH (…)` and `ALTER TABLE … SET (…)`: what is asked of which table (C32).
//! The options are taken out before PostgreSQL sees the statement, and followed once it has run.

use crate::citus;
use crate::error::Error;
use crate::keys::trigger_placement;
use crate::pg::abi::report::or_raise;
use crate::pg::catalog;
use crate::pg::catalog::names::{self, RelationName};
use crate::pg::catalog::namespaced_options::{self, NamespacedOption};
use crate::pg::catalog::syntax::Node;
use crate::pg::exec::relation;
use crate::pg::server::background;
use crate::pg::session::scoped::{Scope, Scoped};
use crate::pg::session::{self, xact};
use crate::policy::TableOptions;
use crate::store::{extension, label_of};
use pgrx::pg_sys::{
    self, AlterTableStmt, CreateStmt, CreateTableAsStmt, NodeTag, ObjectType, PlannedStmt, RangeVar,
};

/// What is to be done to a table.
#[derive(Debug, Clone)]
pub(crate) struct RequestedOptions {
    pub(crate) table: pg_sys::Oid,
    pub(crate) options: TableOptions,
    pub(crate) is_new: bool,
}

struct RunningOptions {
    options: TableOptions,
    table: OptionsTarget,
}

enum OptionsTarget {
    Altered(pg_sys::Oid),
    Created {
        /// The relation that had the name before: with IF NOT EXISTS it may stay.
        former: Option<pg_sys::Oid>,
    },
    /// ALTER TABLE IF EXISTS of a table that does not exist.
    Missing,
}

static RUNNING: Scoped<RunningOptions> = Scoped::new();

/// A statement without our options.
pub(crate) struct WithoutOptions {
    pub(crate) statement: *mut PlannedStmt,
    /// What [`after`] needs.
    pub(crate) place: Scope,
    /// It changes nothing else of a table of Citus, which would lock the shards by other sessions all the same.
    pub(crate) is_for_us_alone: bool,
}

/// Called before a utility statement. Returns what to run in its place.
pub(crate) fn before(planned: Node<'_, PlannedStmt>, node: Node<'_>) -> Option<WithoutOptions> {
    let is_bare = namespaced_options::has_option(planned, c"ttl");
    if !is_bare && !namespaced_options::has_any(planned, c"ttl") {
        return None;
    }
    if session::is_binary_upgrade() || background::in_recovery() {
        return None;
    }
    if extension::functions().is_none() {
        // PostgreSQL refuses a parameter without the namespace.
        return if is_bare {
            None
        } else {
            without_extension().raise()
        };
    }
    if is_bare {
        without_namespace().raise();
    }
    or_raise(check_kind(node));
    let taken = namespaced_options::take(planned, c"ttl")?;
    let statement = taken.statement;
    let options = or_raise(read(taken.options));
    // SAFETY: the copy, which lives as long as the statement.
    let node = unsafe { Node::new((*statement).utilityStmt) }?;
    let table = match name_of(node) {
        Some(name) => OptionsTarget::Created {
            former: names::created_as(name),
        },
        None => node
            .cast::<AlterTableStmt>()
            .filter(|stmt| !is_of_citus(*stmt))
            .and_then(|stmt| altered(stmt, &options))
            .map_or(OptionsTarget::Missing, OptionsTarget::Altered),
    };
    let is_for_us_alone = match table {
        OptionsTarget::Altered(relid) => citus::is_shell(relid) && lacks_commands(node),
        _ => false,
    };
    Some(WithoutOptions {
        statement,
        place: RUNNING.enter(RunningOptions { options, table }),
        is_for_us_alone,
    })
}

/// Whether it is an ALTER TABLE with nothing to do: PostgreSQL checks that the table is there, and its owner.
fn lacks_commands(node: Node<'_>) -> bool {
    let stmt = node.cast::<AlterTableStmt>();
    stmt.is_some_and(|stmt| stmt.cmds.is_null())
}

/// W7: as PostgreSQL's own error, which has no HINT.
fn without_extension() -> Error {
    Error::invalid("unrecognized parameter namespace \"ttl\"")
        .detail("This database does not have the extension ttl_ext.")
        .hint("As superuser, run in this database: CREATE EXTENSION ttl_ext;")
}

/// W7: the same.
fn without_namespace() -> Error {
    Error::invalid("unrecognized parameter \"ttl\"")
    .hint("For the default time to live of the table write ttl.default_ttl, such as WITH (ttl.default_ttl = '30 days').")
}

/// Whether Citus repeats an ALTER TABLE for a shard, or on another node: the node to which it was sent
/// does what it asks, for all.
fn is_of_citus(stmt: Node<'_, AlterTableStmt>) -> bool {
    if citus::is_known_to_be_absent() {
        return false;
    }
    let name = stmt.node(|stmt| &stmt.relation);
    let table = name.and_then(|name| RelationName::Range(name).resolve());
    citus::is_of_citus() || table.is_some_and(|table| citus::shell_of(table).is_some())
}

/// Called after the statement, if it has succeeded: what is left to do, to which table.
pub(crate) fn after(scope: Scope, node: Node<'_>) -> Option<RequestedOptions> {
    let RunningOptions { options, table } = RUNNING.leave(scope)?;
    xact::next_command();
    match table {
        OptionsTarget::Altered(table) => Some(RequestedOptions {
            table,
            options,
            is_new: false,
        }),
        OptionsTarget::Created { former } => {
            let table = names::created_as(name_of(node)?)?;
            let is_new = former != Some(table) && relation::is_new(table);
            is_new.then_some(RequestedOptions {
                table,
                options,
                is_new,
            })
        }
        OptionsTarget::Missing => None,
    }
}

fn read(written: Vec<NamespacedOption>) -> Result<TableOptions, Error> {
    let written = written.into_iter();
    TableOptions::read(written.map(|it| (it.name, it.value, it.is_reset)))
}

/// Refuses the options where what is created is no table.
fn check_kind(node: Node<'_>) -> Result<(), Error> {
    let (kind, hint) = match node.type_ {
        NodeTag::T_ViewStmt => ("a view", "Set it on the tables that the view reads."),
        NodeTag::T_IndexStmt => ("an index", "Set it on the table."),
        NodeTag::T_CreateTableAsStmt
            if node
                .cast::<CreateTableAsStmt>()
                .is_some_and(|stmt| stmt.objtype == ObjectType::OBJECT_MATVIEW) =>
        {
            (
                "a materialized view",
                "Set it on the tables that the view reads, and refresh it.",
            )
        }
        _ => return Ok(()),
    };
    let message = format!("cannot set a time to live on {kind}");
    Err(Error::wrong_kind(message).hint(hint))
}

/// The name of the table that the statement creates.
fn name_of(node: Node<'_>) -> Option<Node<'_, RangeVar>> {
    if let Some(stmt) = node.cast::<CreateStmt>() {
        return stmt.node(|stmt| &stmt.relation);
    }
    let stmt = node.cast::<CreateTableAsStmt>()?;
    stmt.node(|stmt| &stmt.into)?.node(|into| &into.rel)
}

/// The relation to alter, locked as strongly as the change will need: a lock that grows later could
/// deadlock.
fn altered(stmt: Node<'_, AlterTableStmt>, options: &TableOptions) -> Option<pg_sys::Oid> {
    // PostgreSQL tells of one that does not exist.
    let table = RelationName::Range(stmt.node(|stmt| &stmt.relation)?).resolve()?;
    let has_clock = label_of(table).is_some_and(|policy| policy.ts_column.is_some());
    let sets_default = options
        .get("default_ttl")
        .is_some_and(|value| value.is_some());
    let lock = if sets_default && !has_clock || options.get("document_column").is_some() {
        pg_sys::AccessExclusiveLock
    } else if catalog::class(table).is_some() && trigger_placement::will_be_created(table) {
        pg_sys::ShareRowExclusiveLock
    } else {
        pg_sys::ShareUpdateExclusiveLock
    };
    let table = names::altered(stmt, lock.max(names::lock_level(stmt)))?;
    if citus::is_shell(table) {
        or_raise(citus::use_one_session(table));
    }
    Some(table)
}

//! A utility statement, taken apart once: what it is, which tables and indexes it names, and
//! what it does to them. All that follows asks this, never the parser's nodes.
//!
//! Names are resolved once, so that no two answers differ. Without a lock: the statement will
//! take a strong one, and a weak one held before it would let two of them wait for each other.
//! Who writes before the statement locks first, and looks again ([`Statement::take_lock`]).

use super::parse;
use super::reads::{self, Extent};
use crate::pg::names::{self, Name};
use crate::pg::syntax::Node;
use crate::pg::{background, catalog, index, locks, session};
use crate::store::extension;
use pgrx::pg_sys;

/// What a statement is, as far as it can concern a time to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    CreateIndex {
        unique: bool,
    },
    Reindex,
    /// Of a table that inherits from another, or is its partition.
    CreateTable,
    AlterTable,
    /// `ALTER TYPE`, which can take columns and indexes along.
    AlterType,
    /// `ALTER INDEX`, and the like of other relations.
    AlterOther,
    DropIndex,
    /// Of the trigger that frees keys.
    DropTrigger,
    DropExtension,
    DropOther,
    DropOwned,
    RenameColumn,
    /// Of an index, or of a table, by which an index can be named as well.
    RenameRelation,
    RenameConstraint,
    /// Of the trigger that frees keys.
    RenameTrigger,
    /// Of one by the name of the trigger that frees keys.
    CreateTrigger {
        replace: bool,
    },
    /// `SECURITY LABEL … IS NULL` of a table.
    RemoveLabel,
}

/// A command of ALTER TABLE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    AddColumn,
    DropColumn(String),
    AlterType(String),
    /// DROP or SET EXPRESSION: what it does to the expression of which column.
    Expression(&'static str, String),
    /// With the index, of USING INDEX, that becomes the primary key.
    AddConstraint(Option<String>),
    DropConstraint(String),
    /// ENABLE or DISABLE TRIGGER, and whether it takes the one away that frees keys.
    Triggers {
        takes_ours: bool,
    },
    Inherit,
    Attach(Option<pg_sys::Oid>),
    Detach(Option<pg_sys::Oid>),
    Other,
}

/// A utility statement that can concern a time to live.
pub(crate) struct Statement<'a> {
    pub(crate) kind: Kind,
    /// The relation that it names. Of DROP TRIGGER, the table.
    pub(crate) relation: Option<pg_sys::Oid>,
    /// That relation, or the table of that index.
    pub(crate) table: Option<pg_sys::Oid>,
    /// The commands of ALTER TABLE.
    pub(crate) commands: Vec<Command>,
    /// Whose rows it reads or checks, all of them, so that it can fail because of one.
    pub(crate) reads: Option<Extent>,
    /// The indexes that DROP INDEX names.
    pub(crate) indexes: Vec<pg_sys::Oid>,
    /// The column that is renamed.
    pub(crate) column: String,
    /// `CONCURRENTLY`.
    pub(crate) concurrent: bool,
    /// `ONLY` is not said.
    pub(crate) recurses: bool,
    /// The lock that the statement takes first on the relation.
    pub(crate) lock: u32,
    name: Option<Name<'a>>,
}

impl<'a> Statement<'a> {
    /// The statement, if it can concern a time to live: in a database with the extension, and
    /// not where it fails anyway, for which PostgreSQL is to say why.
    pub(crate) fn of(node: Node<'a>) -> Option<Self> {
        let (kind, name) = parse::kind(node)?;
        if session::is_binary_upgrade() || background::in_recovery() {
            return None;
        }
        extension::functions()?;
        let relation = name.and_then(Name::resolve);
        let mut statement = Self {
            kind,
            relation,
            table: relation.map(table_of),
            commands: vec![],
            reads: None,
            indexes: vec![],
            column: String::new(),
            concurrent: false,
            recurses: matches!(name, Some(Name::Range(name)) if name.inh),
            lock: pg_sys::AccessExclusiveLock,
            name,
        };
        if let Some(stmt) = node.cast::<pg_sys::IndexStmt>() {
            statement.concurrent = stmt.concurrent;
            // SHARE, which CREATE INDEX takes, would let two of them wait for each
            // other when they delete.
            statement.lock = if stmt.concurrent {
                pg_sys::ShareUpdateExclusiveLock
            } else {
                pg_sys::ShareRowExclusiveLock
            };
            // Any other index holds expired rows as well as live ones.
            statement.reads = stmt.unique.then_some(Extent::Partitions);
        } else if let Some(stmt) = node.cast::<pg_sys::CreateStmt>() {
            // No row of the default partition may belong to the new one.
            let bound = stmt.node(|stmt| &stmt.partbound);
            let belongs = bound.is_some_and(|bound| !bound.is_default);
            statement.reads = belongs.then_some(Extent::DefaultPartition);
        } else if let Some(stmt) = node.cast::<pg_sys::AlterTableStmt>() {
            statement.lock = names::lock_level(stmt);
            let commands = || stmt.list(|stmt| &stmt.cmds);
            statement.commands = commands().map(parse::command).collect();
            if statement.kind == Kind::AlterTable {
                statement.reads = commands().filter_map(reads::command).max();
            }
        } else if statement.kind == Kind::DropIndex
            && let Some(stmt) = node.cast::<pg_sys::DropStmt>()
        {
            statement.concurrent = stmt.concurrent;
            statement.indexes = stmt
                .list::<pg_sys::List>(|stmt| &stmt.objects)
                .filter_map(|names| Name::Parts(names, names.length).resolve())
                .filter(|&relid| is_index(relid))
                .collect();
        } else if statement.kind == Kind::RenameColumn
            && let Some(stmt) = node.cast::<pg_sys::RenameStmt>()
        {
            statement.column = parse::text(stmt.text(|stmt| &stmt.subname));
        }
        Some(statement)
    }

    /// The partition that is attached or detached. Such a command comes alone.
    pub(crate) fn partition(&self) -> Option<pg_sys::Oid> {
        self.commands.iter().find_map(|command| match command {
            Command::Attach(partition) | Command::Detach(partition) => *partition,
            _ => None,
        })
    }

    /// Takes the statement's own lock on the relation, before anything else is locked; false
    /// if the name stands for another by now.
    pub(crate) fn take_lock(&self, lock: u32) -> bool {
        self.relation.is_some_and(|relation| {
            locks::relation(relation, lock);
            self.name.and_then(Name::resolve) == Some(relation)
        })
    }
}

/// Whether the relation is an index.
pub(crate) fn is_index(relid: pg_sys::Oid) -> bool {
    let kinds = [pg_sys::RELKIND_INDEX, pg_sys::RELKIND_PARTITIONED_INDEX];
    catalog::class(relid).is_some_and(|class| kinds.contains(&class.relkind))
}

/// The table of an index; another relation itself.
pub(crate) fn table_of(relid: pg_sys::Oid) -> pg_sys::Oid {
    index::table_of(relid).unwrap_or(relid)
}

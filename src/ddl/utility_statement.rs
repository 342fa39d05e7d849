//! A utility statement, parsed once: what it is, which tables and indexes it names, and what it
//! does to them. Other files use this, not the parser's nodes.
//!
//! Names are resolved once, so that all checks see the same relation, and without a lock: a weak
//! lock taken before the statement's stronger one could deadlock. Code that writes before the
//! statement takes its lock and resolves the name again ([`UtilityStatement::take_lock`]).

use super::parse;
use super::reads::{self, RowsRead};
use super::statement_kind::{AlterCommand, StatementKind};
use crate::pg::catalog::names::{self, RelationName};
use crate::pg::catalog::syntax::Node;
use crate::pg::catalog::{self, index};
use crate::pg::server::background;
use crate::pg::session::{self, locks};
use crate::store::extension;
use pgrx::pg_sys;

/// A utility statement that can affect TTL.
pub(crate) struct UtilityStatement<'a> {
    pub(crate) kind: StatementKind,
    /// The relation that it names; for DROP TRIGGER, the table.
    pub(crate) relation: Option<pg_sys::Oid>,
    /// The named relation, or for an index its table.
    pub(crate) table: Option<pg_sys::Oid>,
    /// The commands of ALTER TABLE.
    pub(crate) commands: Vec<AlterCommand>,
    /// Which tables it reads or checks row by row; such a statement can fail because of one row.
    pub(crate) reads: Option<RowsRead>,
    /// The indexes that DROP INDEX names.
    pub(crate) indexes: Vec<pg_sys::Oid>,
    /// The column to rename.
    pub(crate) column: String,
    /// `CONCURRENTLY`.
    pub(crate) concurrent: bool,
    /// Without `ONLY`.
    pub(crate) recurses: bool,
    /// The lock that the statement takes first on the relation.
    pub(crate) lock: u32,
    name: Option<RelationName<'a>>,
}

impl<'a> UtilityStatement<'a> {
    /// The statement, if it can affect TTL. `None` in a database without the extension, and where
    /// it must fail anyway, so that PostgreSQL raises the error.
    pub(crate) fn of(node: Node<'a>) -> Option<Self> {
        let (kind, name) = parse::kind(node)?;
        if session::is_binary_upgrade() || background::in_recovery() {
            return None;
        }
        extension::functions()?;
        let relation = name.and_then(RelationName::resolve);
        let mut statement = Self {
            kind,
            relation,
            table: relation.map(table_of),
            commands: vec![],
            reads: None,
            indexes: vec![],
            column: String::new(),
            concurrent: false,
            recurses: matches!(name, Some(RelationName::Range(name)) if name.inh),
            lock: pg_sys::AccessExclusiveLock,
            name,
        };
        if let Some(stmt) = node.cast::<pg_sys::IndexStmt>() {
            statement.concurrent = stmt.concurrent;
            // CREATE INDEX takes SHARE, which does not conflict with itself: two statements that
            // then delete would deadlock.
            statement.lock = if stmt.concurrent {
                pg_sys::ShareUpdateExclusiveLock
            } else {
                pg_sys::ShareRowExclusiveLock
            };
            // Other indexes accept expired rows.
            statement.reads = stmt.unique.then_some(RowsRead::Partitions);
        } else if let Some(stmt) = node.cast::<pg_sys::CreateStmt>() {
            // PostgreSQL checks that no row of the default partition belongs to the new one.
            let bound = stmt.node(|stmt| &stmt.partbound);
            let belongs = bound.is_some_and(|bound| !bound.is_default);
            statement.reads = belongs.then_some(RowsRead::DefaultPartition);
        } else if let Some(stmt) = node.cast::<pg_sys::AlterTableStmt>() {
            statement.lock = names::lock_level(stmt);
            let commands = || stmt.list(|stmt| &stmt.cmds);
            statement.commands = commands().map(parse::command).collect();
            if statement.kind == StatementKind::AlterTable {
                statement.reads = commands().filter_map(reads::command).max();
            }
        } else if statement.kind == StatementKind::DropIndex
            && let Some(stmt) = node.cast::<pg_sys::DropStmt>()
        {
            statement.concurrent = stmt.concurrent;
            statement.indexes = stmt
                .list::<pg_sys::List>(|stmt| &stmt.objects)
                .filter_map(|names| RelationName::Parts(names, names.length).resolve())
                .filter(|&relid| is_index(relid))
                .collect();
        } else if statement.kind == StatementKind::RenameColumn
            && let Some(stmt) = node.cast::<pg_sys::RenameStmt>()
        {
            statement.column = parse::text(stmt.text(|stmt| &stmt.subname));
        }
        Some(statement)
    }

    /// The partition to attach or detach. ALTER TABLE has no other command then.
    pub(crate) fn partition(&self) -> Option<pg_sys::Oid> {
        self.commands.iter().find_map(|command| match command {
            AlterCommand::Attach(partition) | AlterCommand::Detach(partition) => *partition,
            _ => None,
        })
    }

    /// Takes the statement's lock on the relation, before any other lock; false if the name now
    /// means another relation.
    pub(crate) fn take_lock(&self, lock: u32) -> bool {
        self.relation.is_some_and(|relation| {
            locks::relation(relation, lock);
            self.name.and_then(RelationName::resolve) == Some(relation)
        })
    }
}

pub(crate) fn is_index(relid: pg_sys::Oid) -> bool {
    let kinds = [pg_sys::RELKIND_INDEX, pg_sys::RELKIND_PARTITIONED_INDEX];
    catalog::class(relid).is_some_and(|class| kinds.contains(&class.relkind))
}

/// The table of an index; any other relation as it is.
pub(crate) fn table_of(relid: pg_sys::Oid) -> pg_sys::Oid {
    index::table_of(relid).unwrap_or(relid)
}

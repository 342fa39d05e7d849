//! A utility statement, taken apart once: what it is, which tables and indexes it names, and
//! what it does to them. All that follows asks this, never the parser's nodes.
//!
//! Names are resolved once, so that no two answers differ. Without a lock: the statement will
//! take a strong one, and a weak one held before it would let two of them wait for each other.
//! Who writes before the statement locks first, and looks again ([`Statement::take_lock`]).

use super::parse;
use super::reads::{self, Extent};
use crate::pg::{catalog, lists, locks};
use crate::store::extension;
use pgrx::pg_sys::{self, RangeVar};

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
pub(crate) struct Statement {
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
    name: *mut RangeVar,
    node: *mut pg_sys::Node,
}

impl Statement {
    /// The statement, if it can concern a time to live: in a database with the extension, and
    /// not where it fails anyway, for which PostgreSQL is to say why.
    ///
    /// # Safety
    /// `node` is a utility statement of the parser, and lives as long as what is returned.
    pub(crate) unsafe fn of(node: *mut pg_sys::Node) -> Option<Self> {
        // SAFETY: as required of the caller.
        unsafe {
            let kind = parse::kind(node)?;
            if pg_sys::IsBinaryUpgrade || pg_sys::RecoveryInProgress() {
                return None;
            }
            extension::functions()?;
            Some(Self::read(kind, node))
        }
    }

    /// # Safety
    /// `node` is a statement of that kind.
    unsafe fn read(kind: Kind, node: *mut pg_sys::Node) -> Self {
        // SAFETY: the kind tells the node's type.
        unsafe {
            let name = parse::name(kind, node);
            let relation = resolve(name);
            let mut statement = Self {
                kind,
                relation,
                table: relation.map(table_of),
                commands: vec![],
                reads: None,
                indexes: vec![],
                column: String::new(),
                concurrent: false,
                recurses: name.as_ref().is_some_and(|name| name.inh),
                lock: pg_sys::AccessExclusiveLock,
                name,
                node,
            };
            match kind {
                Kind::CreateIndex { .. } => {
                    statement.concurrent = (*node.cast::<pg_sys::IndexStmt>()).concurrent;
                    // SHARE, which CREATE INDEX takes, would let two of them wait for each
                    // other when they delete.
                    statement.lock = if statement.concurrent {
                        pg_sys::ShareUpdateExclusiveLock
                    } else {
                        pg_sys::ShareRowExclusiveLock
                    };
                    // Any other index holds expired rows as well as live ones.
                    let unique = kind == Kind::CreateIndex { unique: true };
                    statement.reads = unique.then_some(Extent::Partitions);
                }
                Kind::CreateTable => {
                    // No row of the default partition may belong to the new one.
                    let bound = (*node.cast::<pg_sys::CreateStmt>()).partbound.as_ref();
                    let belongs = bound.is_some_and(|bound| !bound.is_default);
                    statement.reads = belongs.then_some(Extent::DefaultPartition);
                }
                Kind::AlterTable | Kind::AlterType | Kind::AlterOther => {
                    let commands = (*node.cast::<pg_sys::AlterTableStmt>()).cmds;
                    statement.lock = pg_sys::AlterTableGetLockLevel(commands).cast_unsigned();
                    let commands = || lists::iter::<pg_sys::AlterTableCmd>(commands);
                    statement.commands = commands().map(|it| parse::command(it)).collect();
                    if kind == Kind::AlterTable {
                        statement.reads = commands().filter_map(|it| reads::command(it)).max();
                    }
                }
                Kind::DropIndex => {
                    let stmt = node.cast::<pg_sys::DropStmt>();
                    statement.concurrent = (*stmt).concurrent;
                    statement.indexes = lists::iter::<pg_sys::List>((*stmt).objects)
                        .filter_map(|names| resolve(pg_sys::makeRangeVarFromNameList(names)))
                        .filter(|&relid| is_index(relid))
                        .collect();
                }
                Kind::RenameColumn => {
                    statement.column = parse::text((*node.cast::<pg_sys::RenameStmt>()).subname);
                }
                _ => {}
            }
            statement
        }
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
            // SAFETY: a name of the statement.
            unsafe { resolve(self.name) == Some(relation) }
        })
    }

    /// The relation that CREATE TABLE has made. Without a schema its name is looked for
    /// where it was made, not along the `search_path`.
    pub(crate) fn created(&self) -> Option<pg_sys::Oid> {
        if self.kind != Kind::CreateTable {
            return None;
        }
        // SAFETY: a statement of the parser that has succeeded.
        let table = unsafe {
            let name = (*self.node.cast::<pg_sys::CreateStmt>()).relation;
            let schema = pg_sys::RangeVarGetCreationNamespace(name);
            pg_sys::get_relname_relid((*name).relname, schema)
        };
        (table != pg_sys::InvalidOid).then_some(table)
    }
}

/// The relation; `None` if there is none, which PostgreSQL will report.
///
/// # Safety
/// `name` is a RangeVar or null.
pub(super) unsafe fn resolve(name: *mut RangeVar) -> Option<pg_sys::Oid> {
    if name.is_null() {
        return None;
    }
    let (no_lock, missing_ok) = (
        pg_sys::NoLock.cast_signed(),
        pg_sys::RVROption::RVR_MISSING_OK,
    );
    // SAFETY: as required of the caller.
    let relid = unsafe {
        pg_sys::RangeVarGetRelidExtended(name, no_lock, missing_ok, None, core::ptr::null_mut())
    };
    (relid != pg_sys::InvalidOid).then_some(relid)
}

/// Whether the relation is an index.
pub(crate) fn is_index(relid: pg_sys::Oid) -> bool {
    let kinds = [pg_sys::RELKIND_INDEX, pg_sys::RELKIND_PARTITIONED_INDEX];
    catalog::class(relid).is_some_and(|class| kinds.contains(&class.relkind))
}

/// The table of an index; another relation itself.
pub(crate) fn table_of(relid: pg_sys::Oid) -> pg_sys::Oid {
    // SAFETY: a syscache look-up.
    match unsafe { pg_sys::IndexGetRelation(relid, true) } {
        pg_sys::InvalidOid => relid,
        table => table,
    }
}

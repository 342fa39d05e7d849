//! What kind of statement a utility statement is, and what each command of an ALTER TABLE does.

use pgrx::pg_sys;

/// The kinds of statements that can affect TTL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatementKind {
    CreateIndex {
        unique: bool,
    },
    Reindex,
    /// With a parent: a partition or an inheriting table.
    CreateTable,
    AlterTable,
    /// `ALTER TYPE`, which can drop columns and indexes.
    AlterType,
    /// `ALTER INDEX`, and the same for other relations.
    AlterOther,
    DropIndex,
    /// Of the trigger that frees keys.
    DropTrigger,
    DropExtension,
    DropOther,
    DropOwned,
    ReassignOwned,
    RenameColumn,
    /// Of an index, or of a table: ALTER TABLE can also rename an index.
    RenameRelation,
    RenameConstraint,
    /// Of the trigger that frees keys.
    RenameTrigger,
    /// Whose trigger has the name of the one that frees keys.
    CreateTrigger {
        replace: bool,
    },
    /// `ALTER TABLE … SET SCHEMA`, where Citus is: it may come to a distributed schema, or from one.
    SetSchema,
    /// `SECURITY LABEL … IS NULL` of a table, or any label of a table of Citus.
    SetLabel,
}

/// A command of ALTER TABLE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AlterCommand {
    AddColumn,
    DropColumn(String),
    /// The column; without USING, the type and its modifier.
    AlterType(String, Option<(pg_sys::Oid, i32)>),
    DropNotNull(String),
    /// DROP or SET EXPRESSION: the action, and the column.
    Expression(&'static str, String),
    /// With the index of PRIMARY KEY USING INDEX.
    AddConstraint(Option<String>),
    DropConstraint(String),
    /// ENABLE or DISABLE TRIGGER; `takes_ours` if it disables the one that frees keys.
    Triggers {
        takes_ours: bool,
    },
    /// SET ACCESS METHOD columnar.
    Columnar,
    /// With the parent of INHERIT; `None` for NO INHERIT.
    Inherit(Option<pg_sys::Oid>),
    Attach(Option<pg_sys::Oid>),
    Detach(Option<pg_sys::Oid>),
    Other,
}

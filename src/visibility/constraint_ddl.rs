//! Which ALTER TABLEs are running: one may validate foreign keys, and must then see every row.

use crate::pg::session::scoped::Scoped;
use pgrx::pg_sys;

/// A running ALTER TABLE that may validate foreign keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConstraintDdl {
    /// Who runs it.
    pub(crate) user: pg_sys::Oid,
    /// The table, and the partition that is attached or detached.
    pub(crate) tables: [Option<pg_sys::Oid>; 2],
}

/// Those that are running.
pub(crate) static RUNNING: Scoped<ConstraintDdl> = Scoped::new();

//! The rows on disk.

use super::schema::Schema;
use super::sides::contents;
use crate::{Database, PATIENCE, Session};

/// A session that sees the rows of schema `a` on disk.
pub(super) struct Disk(Session);

/// What such sessions call.
pub(super) const CHECK: &str = include_str!("check.sql");

impl Disk {
    pub(super) fn new(database: &Database<'_>) -> Disk {
        let mut session = database.disk();
        session.run("SET search_path = a; SET jit = off");
        Disk(session)
    }

    /// What is wrong with the constraints.
    pub(super) fn complaint(&mut self) -> Option<String> {
        // In one snapshot: a worker may be deleting.
        let broken = self.0.column(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
             SELECT * FROM public.broken_constraints('a');
             COMMIT",
        );
        (!broken.is_empty()).then(|| format!("on disk: {}", broken.join("; ")))
    }

    /// The rows that are there.
    pub(super) fn contents(&mut self, schema: &Schema) -> Vec<String> {
        contents(&mut self.0, schema)
    }

    /// Wait until only this many rows are on disk.
    pub(super) fn wait_for(&mut self, schema: &Schema, count: usize) {
        let tables = schema.tables.iter();
        let counts: Vec<_> = tables
            .map(|table| format!("(SELECT count(*) FROM {})", table.name))
            .collect();
        let query = format!("SELECT {}", counts.join(" + "));
        self.0.wait_until(&query, &count.to_string(), PATIENCE);
    }
}

//! Deletes expired rows of one table: one by one while a query finds them, by the table access method, or by a DELETE.

use super::archive_check::ArchiveTable;
use super::archiving::Locks;
use super::job::{DeletionWay, Job};
use super::{message, underway};
use crate::error::Error;
use crate::pg::catalog::roles;
use crate::pg::exec::query::{self, Parameter, Sql};
use crate::pg::exec::relation::OpenRelation;
use crate::pg::session::gate::GateVisit;
use crate::pg::session::xact;
use crate::visibility::planned_statement;

/// What deletes in a table, which the caller has locked.
pub(super) struct Deleter<'a> {
    pub(super) visit: &'a GateVisit,
    pub(super) job: &'a Job,
    pub(super) table: OpenRelation,
    archive: Option<ArchiveTable>,
}

impl<'a> Deleter<'a> {
    /// `locks` are those of the archive.
    pub(super) fn new(visit: &'a GateVisit, job: &'a Job, locks: Locks) -> Result<Self, Error> {
        Ok(Self {
            visit,
            job,
            table: OpenRelation::locked(job.relid),
            archive: ArchiveTable::of(job.relid, &job.policy, locks)?,
        })
    }

    /// A heap whose DELETE has no side effects, or only AFTER triggers, is deleted from row by row.
    pub(super) fn way(&self) -> DeletionWay {
        if self.archive.is_some() {
            DeletionWay::Sql
        } else if !self.table.deletion_concerns_others() {
            DeletionWay::Direct
        } else if self.table.deletion_only_queues_triggers() {
            DeletionWay::Queuing
        } else {
            DeletionWay::Sql
        }
    }

    /// Deletes all expired rows of the table in the current transaction, as the current user; waits for locked rows.
    /// Returns their number, without cascades. The caller holds ROW EXCLUSIVE.
    pub(super) fn delete_expired(&self) -> u64 {
        let job = self.job;
        underway::during(roles::current_user(), None, || {
            message::begin(&job.name);
            let rows = self.by_statement(&job.past(), &[]);
            message::end(&job.name, rows);
            xact::next_command();
            rows
        })
    }

    /// Deletes the expired rows that meet the condition, into the archive if there is one, by a statement; returns
    /// their number.
    pub(super) fn by_statement(&self, condition: &str, parameters: &[Parameter]) -> u64 {
        match &self.archive {
            Some(archive) => archive.take(self.visit, self.job, condition, parameters),
            None => planned_statement::with_expired_rows_of(self.job.relid, || {
                let query = self.job.expired_among(condition);
                query::execute(
                    self.visit,
                    Sql::delete_from(self.job.relid, &query),
                    parameters,
                )
            }),
        }
    }
}

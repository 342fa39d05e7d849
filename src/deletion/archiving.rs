//! C26: expired rows are inserted into another table by the statement that deletes them.
//!
//! `WITH gone AS (DELETE … RETURNING …) INSERT …`: what is inserted is what was deleted, whatever
//! triggers keep, and one error undoes both (`docs/decisions/0049-archive-in-the-deletion.md`).

use super::archive_check::{chosen, family};
use super::job::Job;
use crate::error::Result;
use crate::pg::abi::encoding;
use crate::pg::catalog::{self, roles};
use crate::pg::exec::assignment;
use crate::pg::exec::query::{self, Parameter, Sql};
use crate::pg::exec::table::Slot;
use crate::pg::session::gate::{self, GateVisit};
use crate::pg::session::{locks, txn};
use crate::store::TablePolicy;
use crate::visibility::planned_statement;
use pgrx::pg_sys;
use std::collections::HashSet;

/// The table that takes a table's expired rows, after the checks.
#[derive(Debug)]
pub(crate) struct ArchiveTable {
    pub(super) oid: pg_sys::Oid,
    /// Qualified and quoted.
    pub(super) name: String,
    /// The columns that both have, quoted.
    pub(super) columns: Vec<String>,
}

/// How to come by the locks on the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Locks {
    /// As a statement of a session.
    Wait,
    /// As a worker, which comes back later.
    Try,
}

impl ArchiveTable {
    /// For rows of this table or partition; `None` if its policy has no archive. An error if rows
    /// cannot go there: then nothing may be deleted. The caller has locked the table.
    ///
    /// Until the end of the transaction the archive stays what was checked: it, its partitions and
    /// parents are locked, so that none of them gets another owner.
    pub(crate) fn of(
        relid: pg_sys::Oid,
        policy: &TablePolicy,
        locks: Locks,
    ) -> Result<Option<Self>> {
        let Some(archive) = policy.label.archive() else {
            return Ok(None);
        };
        // First without locks, which another user's table must not get.
        let unlocked = chosen(relid, policy.labelled_table, &archive)?;
        lock(unlocked.oid, locks)?;
        chosen(relid, policy.labelled_table, &archive).map(Some)
    }

    pub(crate) fn oid(&self) -> pg_sys::Oid {
        self.oid
    }

    /// Deletes the rows that meet the condition and inserts them; returns how many were deleted.
    pub(super) fn take(
        &self,
        visit: &GateVisit,
        job: &Job,
        condition: &str,
        parameters: &[Parameter],
    ) -> u64 {
        let (columns, delete) = (self.columns.join(", "), job.delete(condition));
        let query = format!(
            "WITH gone AS ({delete} RETURNING {columns}), archived AS ({} SELECT {columns} FROM gone) \
             SELECT pg_catalog.count(*) FROM gone",
            self.insert()
        );
        let tables = [job.relid, self.oid];
        let count = planned_statement::archiving(job.relid, || {
            query::first_value(visit, Sql::naming(&tables, &query), parameters)
        });
        count.map_or(0, |count| count.value() as u64)
    }

    /// A query that does the same with this DELETE, and returns a row for each that was deleted.
    pub(super) fn taking(&self, delete: &[u8]) -> Vec<u8> {
        let columns = self.columns.join(", ");
        let delete = encoding::from_bytes(delete.to_vec());
        let query = format!(
            "WITH gone AS ({delete} RETURNING {columns}), archived AS ({} SELECT {columns} FROM gone) SELECT 1 FROM gone",
            self.insert()
        );
        encoding::query(&query).into_bytes()
    }

    fn insert(&self) -> String {
        let columns = self.columns.join(", ");
        format!(
            "INSERT INTO {} ({columns}) OVERRIDING SYSTEM VALUE",
            self.name
        )
    }
}

/// Inserts a row that has just been deleted, as the table's owner, in the session of any user.
pub(crate) fn take_row(row: Slot<'_>, policy: &TablePolicy) -> Result<()> {
    let relid = row.table().oid();
    let Some(target) = ArchiveTable::of(relid, policy, Locks::Wait)? else {
        return Ok(());
    };
    let doing = format!(
        "while archiving an expired row of table {} in {}",
        catalog::qualified_name(relid),
        target.name
    );
    let values: Vec<String> = target
        .columns
        .iter()
        .map(|column| format!("($1).{column}"))
        .collect();
    let query = format!("{} VALUES ({})", target.insert(), values.join(", "));
    let parameters = [assignment::row(row)];
    let owner = catalog::class(relid).map_or(pg_sys::InvalidOid, |class| class.owner);
    // The user who needs the key may not be allowed to read the row.
    let shows_rows = roles::has_rights_of(roles::current_user(), owner);
    txn::explaining(&doing, shows_rows, || {
        gate::visit(owner, |visit| {
            let tables = [target.oid];
            let query = Sql::naming(&tables, &query);
            planned_statement::archiving(relid, || query::execute(visit, query, &parameters))
        })
    });
    Ok(())
}

/// Locks the archive as INSERT does, and against other owners all that it would not lock before a row
/// goes there.
fn lock(archive: pg_sys::Oid, how: Locks) -> Result<()> {
    let mut locked = HashSet::new();
    loop {
        let family = family(archive).into_iter();
        let new: Vec<pg_sys::Oid> = family.filter(|&table| locked.insert(table)).collect();
        if new.is_empty() {
            return Ok(());
        }
        for table in new {
            pgrx::check_for_interrupts!();
            let mode = match table == archive {
                true => pg_sys::RowExclusiveLock,
                false => pg_sys::AccessShareLock,
            };
            if how == Locks::Wait {
                locks::relation(table, mode);
            } else {
                locks::relation_or_busy(table, mode)?;
            }
        }
    }
}

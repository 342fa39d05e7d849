//! C26: expired rows are inserted into another table by the statement that deletes them.
//!
//! `WITH gone AS (DELETE … RETURNING …) INSERT …`: what is inserted is what was deleted, whatever
//! triggers keep, and one error undoes both (`docs/decisions/0049-archive-in-the-deletion.md`).

use super::job::Job;
use crate::error::{Error, Result};
use crate::pg::gate::{self, Visit};
use crate::pg::query::{self, Parameter};
use crate::pg::table::Slot;
use crate::pg::{assignment, catalog, encoding, locks, names, roles, txn};
use crate::policy::Archive;
use crate::store::TablePolicy;
use crate::visibility::statement;
use pgrx::{PgSqlErrorCode, pg_sys};

/// The table that takes a table's expired rows, after the checks.
#[derive(Debug)]
pub(crate) struct Target {
    oid: pg_sys::Oid,
    /// Qualified and quoted.
    name: String,
    /// The columns that both have, quoted.
    columns: Vec<String>,
}

impl Target {
    /// For rows of this table or partition; `None` if its policy has no archive. An error if rows
    /// cannot go there: then nothing may be deleted. The caller has locked the table.
    pub(crate) fn of(relid: pg_sys::Oid, policy: &TablePolicy) -> Result<Option<Self>> {
        let Some(archive) = &policy.archive else {
            return Ok(None);
        };
        let owner = catalog::class(relid).map(|class| class.owner);
        let ordered_by = catalog::class(policy.labelled_table).map(|class| class.owner);
        let (Some(owner), Some(ordered_by)) = (owner, ordered_by) else {
            return Err(missing(relid, archive));
        };
        // Else code of the target's would run as somebody who has not asked for it.
        if !roles::has_rights_of(ordered_by, owner) {
            let message = format!(
                "cannot archive rows of table {}",
                catalog::qualified_name(relid)
            );
            let root = catalog::qualified_name(policy.labelled_table);
            return Err(
                Error::new(PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE, message)
                    .detail(format!("It does not belong to the owner of {root}."))
                    .hint(format!(
                        "Give both the same owner, or end the archive of {root}."
                    )),
            );
        }
        check(relid, find(relid, archive)?, owner).map(Some)
    }

    /// Locks it as INSERT does, unless that means waiting.
    pub(super) fn try_lock(&self) -> Result<()> {
        if locks::try_relation(self.oid, pg_sys::RowExclusiveLock) {
            return Ok(());
        }
        Err(Error::new(
            PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE,
            format!("could not obtain lock on relation {}", self.name),
        ))
    }

    /// Deletes the rows that meet the condition and inserts them; returns how many were deleted.
    pub(super) fn take(
        &self,
        visit: &Visit,
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
        let count =
            statement::archiving(job.relid, || query::first_value(visit, &query, parameters));
        count.map_or(0, |count| count.value() as u64)
    }

    /// A query that does the same with this DELETE, and returns a row for each that was deleted.
    pub(super) fn taking(&self, delete: Vec<u8>) -> Vec<u8> {
        let columns = self.columns.join(", ");
        let delete = encoding::from_bytes(delete);
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

/// Inserts a row that has just been deleted, as the table's owner, whoever the user is.
pub(crate) fn take_row(row: Slot<'_>, policy: &TablePolicy) -> Result<()> {
    let relid = row.table().oid();
    let Some(target) = Target::of(relid, policy)? else {
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
            statement::archiving(relid, || query::execute(visit, &query, &parameters))
        })
    });
    Ok(())
}

/// The archive: by its name only in a label that was restored.
pub(crate) fn find(relid: pg_sys::Oid, archive: &Archive) -> Result<pg_sys::Oid> {
    let found = match archive.oid.map(pg_sys::Oid::from) {
        Some(oid) => catalog::class(oid).map(|_| oid),
        None => assignment::relation_of_name(&archive.name),
    };
    found.ok_or_else(|| missing(relid, archive))
}

fn missing(relid: pg_sys::Oid, archive: &Archive) -> Error {
    let table = catalog::qualified_name(relid);
    Error::new(
        PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
        format!(
            "table {}, the archive of {table}, does not exist",
            archive.name
        ),
    )
    .detail("Expired rows are not deleted without it.")
    .hint("Name another by ttl.archive_to(), or none with NULL.")
}

/// Checks that rows of `source` can go to `target` with the rights of `role`. The caller has
/// locked `source`.
pub(crate) fn check(source: pg_sys::Oid, target: pg_sys::Oid, role: pg_sys::Oid) -> Result<Target> {
    let (table, name) = (
        catalog::qualified_name(source),
        catalog::qualified_name(target),
    );
    let refused = |code, detail: String, hint: &str| {
        Error::new(
            code,
            format!("cannot archive rows of table {table} in {name}"),
        )
        .detail(detail)
        .hint(hint)
    };
    let wrong_kind = |detail: &str, hint: &str| {
        refused(
            PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE,
            detail.to_owned(),
            hint,
        )
    };
    let class = catalog::class(target).filter(|class| {
        [
            pg_sys::RELKIND_RELATION,
            pg_sys::RELKIND_PARTITIONED_TABLE,
            pg_sys::RELKIND_FOREIGN_TABLE,
        ]
        .contains(&class.relkind)
    });
    let Some(class) = class.filter(|_| target.to_u32() >= pg_sys::FirstNormalObjectId) else {
        return Err(wrong_kind(
            "It is not an ordinary, partitioned or foreign table.",
            "Use a table of your own.",
        ));
    };
    let related = catalog::all_inheritors(source).contains(&target)
        || catalog::ancestors(source).contains(&target);
    if target == source || related {
        return Err(wrong_kind(
            "It is the same table, or a parent, a child or a partition of it.",
            "Use a table of its own.",
        ));
    }
    if class.persistence == pg_sys::RELPERSISTENCE_TEMP {
        return Err(wrong_kind(
            "It is a temporary table, which background deletion does not see.",
            "Use an ordinary table.",
        ));
    }
    if class.has_rules || catalog::class(source).is_some_and(|source| source.has_rules) {
        return Err(refused(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            "One of them has rules.".to_owned(),
            "Use triggers instead of rules.",
        ));
    }
    if !roles::role_may_insert(target, role) || !roles::may_use_schema(class.namespace, role) {
        return Err(refused(
            PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
            format!("The owner, {}, may not INSERT into it.", roles::name(role)),
            "The owner of the table needs INSERT on the archive, and USAGE on its schema.",
        ));
    }
    let mut columns = Vec::new();
    for column in assignment::columns(source) {
        let quoted = catalog::quote_identifier(&column);
        let (Some(from), to) = (
            catalog::attribute(source, &column),
            catalog::attribute(target, &column),
        ) else {
            continue;
        };
        let Some(to) = to else {
            return Err(refused(
                PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
                format!("It has no column {quoted}."),
                "The archive needs each column of the table, by name; CREATE TABLE ... (LIKE ...) makes one.",
            ));
        };
        if to.generated {
            continue;
        }
        if !assignment::is_assignable(from.type_oid, to.type_oid) {
            return Err(refused(
                PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
                format!(
                    "Column {quoted} is of type {}, there of type {}.",
                    names::of_type(from.type_oid),
                    names::of_type(to.type_oid)
                ),
                "There must be a cast in assignment between the two.",
            ));
        }
        columns.push(quoted);
    }
    if columns.is_empty() {
        return Err(wrong_kind("It has no column to insert into.", "Add one."));
    }
    Ok(Target {
        oid: target,
        name,
        columns,
    })
}

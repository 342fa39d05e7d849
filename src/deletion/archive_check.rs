//! Whether rows of a table can go to an archive, and whether that is the one that its owner has chosen (C26).

use crate::error::{Error, Result};
use crate::pg::catalog::{self, code, names, roles};
use crate::pg::exec::assignment;
use crate::policy::{Archive, ArchiveChoice};
use pgrx::{PgSqlErrorCode, pg_sys};

/// The table that takes a table's expired rows, after the checks.
#[derive(Debug)]
pub(crate) struct ArchiveTable {
    pub(super) oid: pg_sys::Oid,
    /// Qualified and quoted.
    pub(super) name: String,
    /// The columns that both have, quoted.
    pub(super) columns: Vec<String>,
}

/// The tables whose owner can have code run by an INSERT into the archive: it, its partitions, and those of
/// which it is a partition or child.
pub(crate) fn family(archive: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let mut found = code::with_partitions(archive);
    found.extend(catalog::ancestors(archive));
    found
}

/// The archive, if it is what the owner of the tables has chosen: it is there, and belongs to this role, as
/// the table that has the policy, the one that the rows are in, and the archive's family do.
pub(crate) fn chosen(
    source: pg_sys::Oid,
    root: pg_sys::Oid,
    archive: &Archive,
) -> Result<ArchiveTable> {
    let Some(chosen) = archive.chosen else {
        return Err(not_confirmed(source, root, archive));
    };
    let target = pg_sys::Oid::from(chosen.table);
    if catalog::class(target).is_none() {
        return Err(missing(source, root, archive));
    }
    let mut concerned = vec![root, source];
    concerned.extend(family(target));
    if !chosen.holds(concerned.iter().map(|&table| owner_of(table))) {
        return Err(other_owners(source, root, target, chosen));
    }
    check(source, target, chosen.owner.into())
}

/// The owner; `None` if the table is gone.
pub(crate) fn owner_of(table: pg_sys::Oid) -> Option<u32> {
    catalog::class(table).map(|class| class.owner.to_u32())
}

fn not_archived(source: pg_sys::Oid, archive: &str) -> Error {
    let table = catalog::qualified_name(source);
    Error::not_ready(format!("cannot archive rows of table {table} in {archive}"))
}

/// The call by which the owner says that the archive is to be used.
pub(crate) fn confirming_call(root: pg_sys::Oid, archive: &str) -> String {
    let table = catalog::quote_literal(&catalog::qualified_name(root));
    let archive = catalog::quote_literal(archive);
    format!("SELECT ttl.archive_to({table}, {archive});")
}

/// The calls by which the owner says whether the archive is to be used.
fn calls(root: pg_sys::Oid, archive: &str) -> String {
    let table = catalog::quote_literal(&catalog::qualified_name(root));
    format!(
        "To use the archive, run: {} To delete expired rows without an archive, run: SELECT ttl.archive_to({table}, NULL);",
        confirming_call(root, archive)
    )
}

fn not_confirmed(source: pg_sys::Oid, root: pg_sys::Oid, archive: &Archive) -> Error {
    not_archived(source, &archive.name)
        .detail(
            "The archive was chosen in another database, or by a label: any table may have its name here.",
        )
        .hint(match names::qualified(&archive.name) {
            Some(_) => calls(root, &archive.name),
            None => format!(
                "First, create table {}. {}",
                archive.name,
                calls(root, &archive.name)
            ),
        })
}

fn other_owners(
    source: pg_sys::Oid,
    root: pg_sys::Oid,
    target: pg_sys::Oid,
    chosen: ArchiveChoice,
) -> Error {
    let mut tables = vec![root, source, target];
    let family = family(target).into_iter();
    let strange = |table: &pg_sys::Oid| owner_of(*table) != owner_of(target);
    tables.extend(family.filter(strange).take(1));
    tables.dedup();
    let present = tables.iter().map(|&table| {
        let name = catalog::qualified_name(table);
        match owner_of(table) {
            Some(owner) => format!("{name} belongs to {}", roles::name(owner.into())),
            None => format!("{name} is gone"),
        }
    });
    let present: Vec<String> = present.collect();
    let name = catalog::qualified_name(target);
    let calls = calls(root, &name);
    let hint = match tables
        .iter()
        .all(|&table| owner_of(table) == owner_of(root))
    {
        true => calls,
        false => format!("First, give the tables one owner. {calls}"),
    };
    not_archived(source, &name)
        .detail(format!(
            "When the archive was chosen, all belonged to {}; now {}.",
            roles::name(chosen.owner.into()),
            present.join(", ")
        ))
        .hint(hint)
}

fn missing(source: pg_sys::Oid, root: pg_sys::Oid, archive: &Archive) -> Error {
    let table = catalog::qualified_name(source);
    let root = catalog::quote_literal(&catalog::qualified_name(root));
    Error::new(
        PgSqlErrorCode::ERRCODE_UNDEFINED_TABLE,
        format!(
            "table {}, the archive of {table}, does not exist",
            archive.name
        ),
    )
    .detail(
        "Expired rows are not deleted without it. A table that was given its name later is another one.",
    )
    .hint(format!(
        "Name another in ttl.archive_to(). To delete expired rows without an archive, run: SELECT ttl.archive_to({root}, NULL);"
    ))
}

/// Checks that rows of `source` can go to `target`, which belongs to `role` as `source` does. The
/// caller has locked `source`.
pub(crate) fn check(
    source: pg_sys::Oid,
    target: pg_sys::Oid,
    role: pg_sys::Oid,
) -> Result<ArchiveTable> {
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
    let is_unlogged = |table: pg_sys::Oid| {
        catalog::class(table)
            .is_some_and(|class| class.persistence == pg_sys::RELPERSISTENCE_UNLOGGED)
    };
    if !is_unlogged(source) && family(target).into_iter().any(is_unlogged) {
        return Err(wrong_kind(
            "It, or a partition of it, is unlogged: a crash of the server would empty it.",
            "Use ALTER TABLE ... SET LOGGED.",
        ));
    }
    if [target, source].into_iter().any(catalog::has_rules) {
        return Err(refused(
            PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
            "One of them has rules.".to_owned(),
            "Use triggers instead of rules.",
        ));
    }
    // Else code of one owner's would run as another, who has not asked for it.
    let mut family = family(target).into_iter();
    if let Some(strange) = family.find(|&table| owner_of(table) != Some(role.to_u32())) {
        let owner = owner_of(strange).map_or(pg_sys::InvalidOid, pg_sys::Oid::from);
        return Err(refused(
            PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
            format!(
                "Table {table} belongs to {}, {} to {}.",
                roles::name(role),
                catalog::qualified_name(strange),
                roles::name(owner)
            ),
            "The archive, its partitions and its parents need the owner of the table: ALTER TABLE ... OWNER TO.",
        ));
    }
    if !roles::may(target, role, pg_sys::ACL_INSERT)
        || !roles::may_use_schema(class.namespace, role)
    {
        return Err(refused(
            PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
            format!("The owner, {}, may not INSERT into it.", roles::name(role)),
            "The owner of the table needs INSERT on the archive, and USAGE on its schema.",
        ));
    }
    let mut columns = Vec::new();
    for (column, from) in catalog::columns(source) {
        let quoted = catalog::quote_identifier(&column);
        let Some(to) = catalog::attribute(target, &column) else {
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
    Ok(ArchiveTable {
        oid: target,
        name,
        columns,
    })
}

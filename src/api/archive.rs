//! `ttl.archive_to`.

use super::{cluster, guard};
use crate::deletion::archive;
use crate::error::{Error, Result};
use crate::pg::report::or_raise;
use crate::pg::{catalog, xact};
use crate::policy::{ExpiredThere, Policy};
use crate::store::{governing_label, label_of, seclabel};
use pgrx::prelude::*;
use pgrx::{PgSqlErrorCode, pg_sys};

/// The longest chain of archives that is followed.
const LONGEST_CHAIN: usize = 100;

/// `ttl.archive_to(rel, target)` (C26): expired rows are inserted into `target` as they are
/// deleted; NULL ends that.
#[pg_extern(sql = false)]
fn archive_to(rel: Option<pg_sys::Oid>, target: Option<pg_sys::Oid>) {
    guard::check_writable(c"ttl.archive_to()");
    or_raise(guard::required(rel, "rel").and_then(|rel| set(rel, target)));
}

fn set(relid: pg_sys::Oid, target: Option<pg_sys::Oid>) -> Result<()> {
    match target {
        Some(_) => {
            guard::check_changeable(relid)?;
            let hint = "Copy rows before they expire, or use a table that Citus does not manage.";
            cluster::refuse_on_shell(relid, "ttl.archive_to()", hint)?;
        }
        None => guard::check_owner(relid)?,
    }
    guard::lock(relid, pg_sys::ShareUpdateExclusiveLock);
    let Some(mut policy) = guard::own_policy(relid)? else {
        return Err(Error::no_policy(relid));
    };
    if let Some(target) = target {
        // First without a lock, which not everybody may take.
        check(relid, target)?;
        guard::lock(target, pg_sys::AccessShareLock);
        check(relid, target)?;
        match expired_there(&policy, target) {
            Some(ExpiredThere::ByDefault(seconds)) => {
                return Err(born_expired(relid, target, seconds));
            }
            Some(ExpiredThere::ByOverride) => told_of_overrides(target).notice(),
            None => {}
        }
    }
    policy.archive_to = target.map(catalog::qualified_name);
    policy.archive_oid = target.map(pg_sys::Oid::to_u32);
    seclabel::set(relid, Some(&policy.to_label()));
    xact::next_command();
    Ok(())
}

fn expired_there(policy: &Policy, target: pg_sys::Oid) -> Option<ExpiredThere> {
    let there = governing_label(target)?;
    ExpiredThere::of(policy, &there.policy)
}

fn born_expired(relid: pg_sys::Oid, target: pg_sys::Oid, seconds: i32) -> Error {
    let (table, archive) = (
        catalog::qualified_name(relid),
        catalog::qualified_name(target),
    );
    let quoted = catalog::quote_literal(&archive);
    Error::new(
        PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        format!("cannot archive rows of table {table} in {archive}"),
    )
    .detail(format!(
        "They are expired there, too: its default time to live is {seconds} s."
    ))
    .hint(format!(
        "Turn that off, SELECT ttl.disable({quoted}), or make it longer than that of {table}, SELECT ttl.set_default({quoted}, ...)."
    ))
}

fn told_of_overrides(target: pg_sys::Oid) -> Error {
    let archive = catalog::qualified_name(target);
    Error::new(
        PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
        format!("archived rows with an override are expired in {archive}, too"),
    )
    .detail("It has a time to live with the same column for overrides.")
}

/// Refuses a target for which the table's owner, who deletes, lacks a right, or rows a column.
fn check(relid: pg_sys::Oid, target: pg_sys::Oid) -> Result<()> {
    let owner = catalog::class(relid).map_or(pg_sys::InvalidOid, |class| class.owner);
    archive::check(relid, target, owner)?;
    let mut next = target;
    for _ in 0..LONGEST_CHAIN {
        if next == relid {
            let message = format!(
                "cannot archive rows of table {} in {}",
                catalog::qualified_name(relid),
                catalog::qualified_name(target)
            );
            return Err(
                Error::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message)
                    .detail("Its own expired rows are archived there.")
                    .hint("Use a table without a time to live, or with another archive."),
            );
        }
        let Some(oid) = label_of(next).and_then(|policy| policy.archive_oid) else {
            break;
        };
        next = oid.into();
    }
    Ok(())
}

/// For `ttl.resume`: the archive of a restored label, by its name.
pub(super) fn bind(relid: pg_sys::Oid, policy: &mut Policy) -> Result<()> {
    if let Some(restored) = policy.archive().filter(|archive| archive.oid.is_none()) {
        let target = archive::find(relid, &restored)?;
        check(relid, target)?;
        policy.archive_oid = Some(target.to_u32());
    }
    Ok(())
}

/// For `ttl.problems`: why expired rows stay, or that a dump would name another table.
pub(super) fn problems(relid: pg_sys::Oid, policy: &Policy) -> Vec<String> {
    let Some(target) = policy.archive() else {
        return vec![];
    };
    let owner = catalog::class(relid).map_or(pg_sys::InvalidOid, |class| class.owner);
    let found = archive::find(relid, &target)
        .and_then(|oid| archive::check(relid, oid, owner).map(|_| oid));
    match found {
        Err(failure) => vec![format!("nothing is deleted: {}", failure.text())],
        Ok(oid) => {
            let name = catalog::qualified_name(oid);
            let mut problems = vec![];
            if name != target.name {
                problems.push(format!(
                    "the archive {} is now {name}: a dump names the former until ttl.archive_to() is called again",
                    target.name
                ));
            }
            if let Some(ExpiredThere::ByDefault(seconds)) = expired_there(policy, oid) {
                problems.push(format!(
                    "archived rows are expired in {name}, too: its default time to live is {seconds} s"
                ));
            }
            problems
        }
    }
}

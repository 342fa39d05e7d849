//! `ttl.archive_to`.

use super::problem::Problem;
use super::{cluster, guard};
use crate::deletion::archive_check;
use crate::error::{Error, Result};
use crate::pg::abi::report::or_raise;
use crate::pg::abi::values;
use crate::pg::catalog::{self, names, qualified_name, quote_identifier, quote_literal};
use crate::pg::session::{self, xact};
use crate::policy::{Archive, ArchiveChoice, ExpiredThere, Policy};
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
        None => guard::check_change(relid)?,
    }
    guard::lock(relid, pg_sys::ShareUpdateExclusiveLock);
    let mut policy = guard::present_policy(relid)?;
    if let Some(target) = target {
        // First without a lock, for which the user may lack the privilege.
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
        tell_of_keys(relid, &policy, target)?;
    }
    match target {
        Some(target) => choose(relid, &mut policy, target),
        None => policy.end_archive(),
    }
    seclabel::set(relid, Some(&policy));
    xact::next_command();
    Ok(())
}

/// Notes which table it is, and whose both are: [`check`] has found one owner.
fn choose(relid: pg_sys::Oid, policy: &mut Policy, target: pg_sys::Oid) {
    let chosen = ArchiveChoice {
        table: target.to_u32(),
        owner: archive_check::owner_of(relid).unwrap_or_default(),
    };
    let name = session::with_safe_search_path(|| catalog::qualified_name(target));
    policy.choose_archive(name, chosen);
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
    Error::invalid(format!("cannot archive rows of table {table} in {archive}"))
    .detail(format!(
        "They are expired there, too: its default time to live is {seconds} s."
    ))
    .hint(format!(
        "To turn that off, run: SELECT ttl.disable({quoted}); otherwise, make it longer than that of {table}, with ttl.set_default()."
    ))
}

fn told_of_overrides(target: pg_sys::Oid) -> Error {
    let archive = catalog::qualified_name(target);
    Error::for_notice(format!(
        "archived rows with an override are expired in {archive}, too"
    ))
    .detail("It has a time to live with the same column for overrides.")
}

/// Refuses a target for which the table's owner, who deletes, lacks a right, or rows a column.
fn check(relid: pg_sys::Oid, target: pg_sys::Oid) -> Result<()> {
    let owner = catalog::class(relid).map_or(pg_sys::InvalidOid, |class| class.owner);
    archive_check::check(relid, target, owner)?;
    let mut next = target;
    for _ in 0..LONGEST_CHAIN {
        if next == relid {
            let message = format!(
                "cannot archive rows of table {} in {}",
                catalog::qualified_name(relid),
                catalog::qualified_name(target)
            );
            return Err(Error::invalid(message)
                .detail("Its own expired rows are archived there.")
                .hint("Use a table without a time to live, or with another archive."));
        }
        let archive = label_of(next).and_then(|policy| policy.archive()?.chosen);
        let Some(chosen) = archive else {
            break;
        };
        next = chosen.table.into();
    }
    Ok(())
}

/// For `ttl.resume`: says that deletion waits for the archive, if it does, and what to call.
pub(in crate::api) fn tell_of_wait(relid: pg_sys::Oid, policy: &Policy) {
    let failure = policy
        .archive()
        .and_then(|archive| archive_check::chosen(relid, relid, &archive).err());
    if let Some(failure) = failure {
        let table = catalog::qualified_name(relid);
        Error {
            code: PgSqlErrorCode::ERRCODE_WARNING,
            message: format!("expired rows of table {table} are not deleted"),
            detail: Some(format!("They wait for their archive: {}", failure.text())),
            hint: failure.hint,
        }
        .warn();
    }
}

/// For `ttl.problems`: why expired rows stay, or that a dump would name another table.
pub(in crate::api) fn problems(relid: pg_sys::Oid, policy: &Policy) -> Vec<Problem> {
    let Some(archive) = policy.archive() else {
        return vec![];
    };
    let found = archive_check::chosen(relid, relid, &archive).and_then(|target| {
        // Only their owners differ.
        let others = catalog::all_inheritors(relid).into_iter();
        let strange =
            |table: &pg_sys::Oid| archive_check::owner_of(*table) != archive_check::owner_of(relid);
        match others
            .filter(strange)
            .find(|&table| catalog::has_rows(table))
        {
            Some(table) => archive_check::chosen(table, relid, &archive),
            None => Ok(target),
        }
    });
    let oid = match found {
        Ok(target) => target.oid(),
        Err(failure) => {
            let hint = failure.hint.as_deref().unwrap_or_default();
            let text = format!("nothing is deleted: {} {hint}", failure.text());
            return vec![Problem::new(text).with_statements(confirmation(relid, &archive))];
        }
    };
    let name = catalog::qualified_name(oid);
    let mut problems = vec![];
    if !names::is_of(oid, &archive.name) {
        let text = format!(
            "the archive {} is now {name}: a dump names the former until ttl.archive_to() is called again",
            archive.name
        );
        problems
            .push(Problem::new(text).with_statement(archive_check::confirming_call(relid, &name)));
    }
    if let Some(ExpiredThere::ByDefault(seconds)) = expired_there(policy, oid) {
        let text = format!(
            "archived rows are expired in {name}, too: its default time to live is {seconds} s"
        );
        let target = catalog::quote_literal(&name);
        problems.push(Problem::new(text).with_statement(format!("SELECT ttl.disable({target});")));
    }
    problems
}

/// The call that confirms the archive, if it would be accepted.
fn confirmation(relid: pg_sys::Oid, archive: &Archive) -> Option<String> {
    let chosen = archive.chosen.map(|chosen| pg_sys::Oid::from(chosen.table));
    let target = chosen.or_else(|| names::qualified(&archive.name))?;
    catalog::class(target)?;
    check(relid, target).ok()?;
    Some(archive_check::confirming_call(
        relid,
        &catalog::qualified_name(target),
    ))
}

/// Says which key of the archive keeps a second row of the same key on disk: a key that has been archived comes again, when
/// a new row has taken it and has expired, too (W7).
fn tell_of_keys(relid: pg_sys::Oid, policy: &Policy, archive: pg_sys::Oid) -> Result<()> {
    let Some((key, is_constraint)) = key_that_repeats(relid, policy, archive)? else {
        return Ok(());
    };
    let (table, archive) = (qualified_name(relid), qualified_name(archive));
    let name = quote_identifier(&catalog::relation_name(key));
    let drop = match is_constraint {
        true => format!("ALTER TABLE {archive} DROP CONSTRAINT {name};"),
        false => format!("DROP INDEX {};", qualified_name(key)),
    };
    let message =
        format!("an expired row of table {table} stays on disk if {archive} has its key already");
    Error::for_notice(message)
        .detail(format!(
            "A key of {table} can be used again once its row has expired, and {name} allows it only once in the archive. Such a row is counted in \"blocked_rows\" of ttl.stats."
        ))
        .hint(format!("To archive every row, run: {drop}"))
        .notice();
    Ok(())
}

/// A unique index of the archive, or that of an exclusion constraint, and whether a constraint has it: one whose columns all
/// come from the table, but for the time of the last modification. Two rows of one key are never written at the same time, and
/// the archive fills what only it has.
fn key_that_repeats(
    relid: pg_sys::Oid,
    policy: &Policy,
    archive: pg_sys::Oid,
) -> Result<Option<(pg_sys::Oid, bool)>> {
    let archived = catalog::copied_columns(relid);
    let repeats: Vec<String> = archived
        .filter(|column| policy.ts_column.as_ref() != Some(column))
        .map(|column| quote_literal(&column))
        .collect();
    let query = format!(
        "SELECT i.indexrelid::pg_catalog.int8::pg_catalog.text, (k.oid IS NOT NULL)::pg_catalog.text \
           FROM pg_catalog.pg_index AS i \
           LEFT JOIN pg_catalog.pg_constraint AS k ON k.conindid OPERATOR(pg_catalog.=) i.indexrelid \
            AND k.conrelid OPERATOR(pg_catalog.=) i.indrelid AND k.contype OPERATOR(pg_catalog.<>) 'f' \
          WHERE i.indrelid OPERATOR(pg_catalog.=) {}::pg_catalog.oid AND (i.indisunique OR i.indisexclusion) \
            AND NOT EXISTS (SELECT FROM pg_catalog.unnest(i.indkey) WITH ORDINALITY AS c (attnum, position) \
                              JOIN pg_catalog.pg_attribute AS a ON a.attrelid OPERATOR(pg_catalog.=) i.indrelid \
                               AND a.attnum OPERATOR(pg_catalog.=) c.attnum \
                             WHERE c.position OPERATOR(pg_catalog.<=) i.indnkeyatts \
                               AND a.attname OPERATOR(pg_catalog.<>) ALL (ARRAY[{}]::pg_catalog.name[])) \
          ORDER BY i.indexrelid LIMIT 1",
        archive.to_u32(),
        repeats.join(", ")
    );
    let found = values::texts::<2>(&query)?.into_iter().next();
    Ok(found.and_then(|[key, is_constraint]| {
        let key = pg_sys::Oid::from(key.parse::<u32>().ok()?);
        Some((key, is_constraint == "true"))
    }))
}

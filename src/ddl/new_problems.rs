//! What a statement brings about that keeps rows from being deleted, or writes from being made: said at once, in a WARNING, and not
//! only by `ttl.check()`. What it is and what ends it is known above ([`init`]).

use super::statement_kind::StatementKind;
use super::utility_statement::UtilityStatement;
use crate::citus;
use crate::error::Error;
use crate::pg::catalog;
use crate::pg::session::xact;
use crate::store::cache;
use pgrx::pg_sys;
use std::sync::OnceLock;

/// The problems of a table with a policy that a change of another one, or of itself, can bring about: in words, and what ends each.
/// `None` if they cannot be looked for.
type Problems = fn(pg_sys::Oid, pg_sys::Oid) -> Option<Vec<(String, Option<String>)>>;

static PROBLEMS: OnceLock<Problems> = OnceLock::new();

/// Called once, at load.
pub(crate) fn init(problems: Problems) {
    PROBLEMS.get_or_init(|| problems);
}

/// The problems before a statement.
pub(super) struct ProblemsBefore {
    changed: pg_sys::Oid,
    /// Of tables with a policy; `None` where they could not be looked for.
    known: Vec<(pg_sys::Oid, Option<Vec<String>>)>,
}

/// Those of the policies that a table has to do with, before it is changed.
pub(super) fn before(statement: &UtilityStatement<'_>) -> Option<ProblemsBefore> {
    if statement.kind != StatementKind::AlterTable || citus::is_of_citus() {
        return None;
    }
    let changed = statement.partition().or(statement.relation)?;
    let texts = |policy| {
        let found = found(policy, changed).map(Vec::into_iter);
        (policy, found.map(|all| all.map(|(text, _)| text).collect()))
    };
    Some(ProblemsBefore {
        changed,
        known: concerned(changed).into_iter().map(texts).collect(),
    })
}

/// The tables with a policy that the table has, or that is in force for it.
fn concerned(changed: pg_sys::Oid) -> Vec<pg_sys::Oid> {
    let in_force = cache::labelled_table(changed);
    let own = cache::own_label(changed).map(|_| changed);
    let own = own.filter(|_| in_force != Some(changed));
    in_force.into_iter().chain(own).collect()
}

fn found(policy: pg_sys::Oid, changed: pg_sys::Oid) -> Option<Vec<(String, Option<String>)>> {
    PROBLEMS.get()?(policy, changed)
}

/// After the statement: warns of those that were not there.
pub(super) fn after(before: &ProblemsBefore) {
    tell(before.changed, |policy, text| {
        let known = before.known.iter().find(|(table, _)| *table == policy);
        known.is_none_or(|(_, known)| {
            let known = known.as_ref();
            known.is_some_and(|known| known.iter().all(|known| known != text))
        })
    });
}

/// Of a table that was just made: of those in which it is named.
pub(super) fn of_new(created: pg_sys::Oid) {
    let name = catalog::qualified_name(created);
    tell(created, |_, text| text.contains(&name));
}

fn tell(changed: pg_sys::Oid, is_new: impl Fn(pg_sys::Oid, &str) -> bool) {
    xact::next_command();
    // DETACH PARTITION CONCURRENTLY leaves no snapshot.
    xact::with_snapshot(|| {
        for policy in concerned(changed) {
            for (text, to_do) in found(policy, changed).unwrap_or_default() {
                if is_new(policy, &text) {
                    warn(policy, &text, to_do);
                }
            }
        }
    });
}

fn warn(policy: pg_sys::Oid, text: &str, to_do: Option<String>) {
    let mut letters = text.chars();
    let first: String = letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    let warning = Error::for_warning(format!(
        "the time to live of table {} has a problem from now on",
        catalog::qualified_name(policy)
    ))
    .detail(format!(
        "{first}{}.",
        letters.as_str().trim_end_matches('.')
    ));
    match to_do {
        Some(statement) => warning.hint(format!("To end it, run: {statement}")).warn(),
        None => warning.warn(),
    }
}

//! Differences that are allowed between the answers with TTL and those with deleted rows
//! (`docs/decisions/0016`).

use super::answer::{Answer, Failure};
use super::generator::{Step, Way};
use super::schema::Schema;
use super::sides::Side;

/// What a difference means for the rest of the sequence.
pub(super) enum Known {
    /// Both failed, but found different errors first.
    BothFailed,
    /// Only the tables with TTL reject it, so the tables differ from here on.
    Refused,
}

/// Whether this difference is a known one.
pub(super) fn difference(
    plain: &mut Side,
    schema: &Schema,
    step: &Step,
    answer: &Answer,
    expected: &Answer,
) -> Option<Known> {
    let Answer::Failed(failure) = answer else {
        return None;
    };
    match expected {
        Answer::Failed(_) if finds_another(step, failure) => Some(Known::BothFailed),
        Answer::Failed(other) if are_deferred_checks(step, [failure, other]) => {
            Some(Known::BothFailed)
        }
        Answer::Failed(_) => None,
        _ if is_refused(plain, schema, failure) => Some(Known::Refused),
        _ => None,
    }
}

/// COPY without multi-insert, because of the trigger, meets the faults of its rows
/// in their order; with it those of a batch, check by check. And what the deletion of
/// an expired row meets comes before what is wrong with the rows that follow, and
/// before the check of a row that refers to the one whose place it takes.
fn finds_another(step: &Step, failure: &Failure) -> bool {
    step.way == Way::Copy || is_still_referenced(failure) || is_about_own_rows(failure)
}

/// Deferred checks fire in the order in which their rows were written, and with
/// multi-insert COPY writes those of one partition after those of another.
fn are_deferred_checks(step: &Step, failures: [&Failure; 2]) -> bool {
    let fires = step.sql == "COMMIT" || step.sql.starts_with("SET CONSTRAINTS");
    fires
        && failures.iter().all(|failure| {
            failure.code == "23503" && failure.message.starts_with("insert or update on table")
        })
}

fn is_still_referenced(failure: &Failure) -> bool {
    failure.message.starts_with("update or delete") && ["23503", "23001"].contains(&&*failure.code)
}

fn is_about_own_rows(failure: &Failure) -> bool {
    let refusals = ["cannot put a new row", "cannot delete an expired row"];
    failure.code == "23503"
        && refusals
            .iter()
            .any(|text| failure.message.starts_with(text))
}

/// Rows of the same transaction refer to the expired one: they came before the one that
/// they are meant for, or nothing is to come and they fail later. What a referential action
/// of the expired row would do to them is not done silently.
fn is_refused(plain: &mut Side, schema: &Schema, failure: &Failure) -> bool {
    if is_about_own_rows(failure) {
        return true;
    }
    if !is_still_referenced(failure) {
        return false;
    }
    // RESTRICT, or another key of the expired row than the one referred to: a live
    // row does, and in these sequences it cannot be older than the expired one.
    let (Some(key), Some((_, value))) = (schema.key(&failure.constraint), failure.key()) else {
        return false;
    };
    let (child, column) = (schema.tables[key.child].name, key.column);
    let query = format!("SELECT count(*) FROM {child} WHERE {column} = {value}");
    plain.session.value(&query) != "0"
}

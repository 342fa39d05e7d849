//! Wild sequences have no other side to compare with. But if a statement is rejected because of a
//! row, the user must see that row.

use super::answer::{Answer, Failure};
use super::generator::{Step, Way};
use super::schema::Schema;
use super::sides::Side;

/// What a statement may fail with.
const REASONS: &[&str] = &[
    "23505", // unique
    "23P01", // exclusion
    "23503", // foreign key
    "23001", // RESTRICT, from 18 on
    "23502", // NOT NULL
    "23514", // CHECK, and no partition for the row
    "21000", // twice in one statement
    "27000", // a trigger has changed the row that is being changed
    "42P10", "42704", // no such arbiter
    "55000", // a constraint that can wait is no arbiter
    "55006", // ALTER TABLE with checks that wait
    "0A000", // an upsert that would move the row to another partition
    "40001", // the worker was there
];

/// What is wrong with the answer to a step, which was begun outside of a
/// transaction or not.
pub(super) fn complaint(
    side: &mut Side,
    schema: &Schema,
    step: &Step,
    answer: &Answer,
    alone: bool,
) -> Option<String> {
    let one_row =
        step.way != Way::Copy && !step.sql.contains("), (") && !step.sql.contains("SELECT");
    match answer {
        Answer::Failed(failure) if !REASONS.contains(&failure.code.as_str()) => {
            Some("no reason to fail".to_owned())
        }
        // A policy's statement works on expired rows.
        _ if !alone || step.way == Way::Policy => None,
        Answer::Failed(failure) if one_row => invisible(side, schema, step, failure),
        Answer::Done(lines) if is_insertion(step) && !lines.contains(&"# 0".to_owned()) => {
            orphan(side, schema, step)
        }
        _ => None,
    }
}

/// C6: neither the key of an expired row nor an expired child is in the way.
fn invisible(side: &mut Side, schema: &Schema, step: &Step, failure: &Failure) -> Option<String> {
    let (columns, values) = failure.key()?;
    let query = match failure.code.as_str() {
        "23505" if step.sql.starts_with("INSERT") || step.sql.contains("WHERE id = ") => {
            format!(
                "SELECT count(*) FROM {} WHERE ROW({columns}) IS NOT DISTINCT FROM ROW({values})",
                failure.table
            )
        }
        "23503" | "23001" if failure.message.starts_with("update or delete") => {
            let key = schema.key(&failure.constraint)?;
            // Or the statement itself writes a row that refers to the removed one, or its action
            // does: the default may be a row that goes, too.
            if (key.child == key.parent && !step.sql.starts_with("DELETE")) || key.sets_default() {
                return None;
            }
            let child = schema.tables[key.child].name;
            format!(
                "SELECT count(*) FROM {child} WHERE {} = {values}",
                key.column
            )
        }
        _ => return None,
    };
    let count = side.session.value(&query);
    (count == "0").then(|| format!("the row in the way is not to be seen: {query}"))
}

/// A statement that only writes new, live rows.
fn is_insertion(step: &Step) -> bool {
    step.way != Way::Preserving
        && step.sql.starts_with("INSERT INTO ")
        && !step.sql.contains("ON CONFLICT")
}

/// C6: an expired parent takes no new child. New are the rows of the last
/// transaction that wrote to the table.
fn orphan(side: &mut Side, schema: &Schema, step: &Step) -> Option<String> {
    for key in &schema.keys {
        let (child, parent) = (&schema.tables[key.child], &schema.tables[key.parent]);
        if !step.sql.starts_with(&format!("INSERT INTO {}", child.name)) {
            continue;
        }
        let query = format!(
            "SELECT count(*) FROM {} AS c WHERE c.xmin::text = (SELECT max(xmin::text::bigint)::text FROM {0})
              AND c.{1} IS NOT NULL AND NOT EXISTS (SELECT FROM {2} AS p WHERE p.{3} = c.{1})",
            child.name, key.column, parent.name, key.target
        );
        if side.session.value(&query) != "0" {
            return Some(format!("a new child of an expired parent: {query}"));
        }
    }
    None
}

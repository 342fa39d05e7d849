//! SQL with its answers, as documents and test scripts have it: `--> …` after a statement is what it
//! returns, a row a comment, columns with ` | ` between, `∅` for NULL, or `(no rows)`.

use crate::session::Session;

/// A statement, and the rows that the script says it returns, if it says so.
#[derive(Debug, Default)]
pub struct Step {
    sql: String,
    answer: Vec<String>,
}

/// A statement ends with the line that ends with a semicolon, comments aside, outside of `$$`.
///
/// # Panics
/// If an answer stands elsewhere than after a statement, or the last statement has no end.
pub fn steps(script: &str) -> Vec<Step> {
    let mut found: Vec<Step> = Vec::new();
    let mut sql = String::new();
    for line in script.lines() {
        let (code, answer) = match line.split_once("--> ") {
            Some((code, answer)) => (code, Some(answer.trim().to_owned())),
            None => (line, None),
        };
        let code = code.split("-- ").next().unwrap_or_default().trim_end();
        if !code.is_empty() {
            sql = format!("{sql}{code}\n");
        }
        if code.ends_with(';') && sql.matches("$$").count().is_multiple_of(2) {
            found.push(Step {
                sql: std::mem::take(&mut sql),
                answer: Vec::new(),
            });
        }
        if let Some(answer) = answer {
            assert!(sql.is_empty(), "an answer inside a statement: {line}");
            let step = found.last_mut().expect("a statement before its answer");
            step.answer.push(answer);
        }
    }
    assert!(sql.trim().is_empty(), "a statement without its end: {sql}");
    found
}

/// Run a script; how many answers were compared.
///
/// # Panics
/// If a statement fails, or returns something else.
#[track_caller]
pub fn follow(session: &mut Session, script: &str) -> usize {
    let mut compared = 0;
    for step in steps(script) {
        let rows = session.rows(&step.sql);
        let mut rows: Vec<String> = rows.into_iter().map(|row| row.join(" | ")).collect();
        if step.answer.is_empty() {
            continue;
        }
        if rows.is_empty() {
            rows.push("(no rows)".to_owned());
        }
        assert_eq!(rows, step.answer, "{}", step.sql);
        compared += 1;
    }
    compared
}

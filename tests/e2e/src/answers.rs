//! SQL with its answers, as documents and test scripts have it: `--> …` after a statement is what it
//! returns, a row a comment, columns with ` | ` between, `∅` for NULL, or `(no rows)`. `…` in it stands for any text.
//! A statement that is to fail has `--> ERROR:  …`, as psql shows it, and if that is said a line for DETAIL and HINT.

use crate::session::{Session, describe, row_text};

/// A statement, and the rows that the script says it returns, if it says so.
#[derive(Debug, Default)]
pub struct Step {
    sql: String,
    answer: Vec<String>,
}

impl Step {
    /// The statement.
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// Run it; whether an answer was compared.
    ///
    /// # Errors
    /// If the statement fails, or returns something else than the script says.
    pub fn run(&self, session: &mut Session) -> Result<bool, String> {
        let fails = self
            .answer
            .first()
            .is_some_and(|line| line.starts_with("ERROR:"));
        let mut rows: Vec<String> = match session.try_run(&self.sql) {
            Ok(messages) => {
                let rows = messages.iter().filter_map(row_text);
                rows.map(|row| row.join(" | ")).collect()
            }
            Err(error) if fails => self.error(&error),
            Err(error) => return Err(describe(&error)),
        };
        if self.answer.is_empty() {
            return Ok(false);
        }
        if rows.is_empty() {
            rows.push("(no rows)".to_owned());
        }
        let same = rows.len() == self.answer.len()
            && rows
                .iter()
                .zip(&self.answer)
                .all(|(row, answer)| fits(row, answer));
        if same {
            Ok(true)
        } else {
            Err(format!("returned {rows:#?}, expected {:#?}", self.answer))
        }
    }

    /// An error as psql shows it, without the lines that the script leaves out.
    fn error(&self, error: &postgres::Error) -> Vec<String> {
        let Some(error) = error.as_db_error() else {
            return vec![error.to_string()];
        };
        let mut lines = vec![format!("ERROR:  {}", error.message())];
        for (name, text) in [("DETAIL", error.detail()), ("HINT", error.hint())] {
            let said = self.answer.iter().any(|line| line.starts_with(name));
            lines.extend(text.filter(|_| said).map(|text| format!("{name}:  {text}")));
        }
        lines
    }
}

/// Whether a row is the expected one, where `…` stands for any text.
fn fits(row: &str, answer: &str) -> bool {
    let mut parts = answer.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = row.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
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
        match step.run(session) {
            Ok(answered) => compared += usize::from(answered),
            Err(fault) => session.fail(&step.sql, &fault),
        }
    }
    compared
}
